"""Small programs given as a word: which sed, awk and jq scripts and printf formats do nothing but print or
replace."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_ADDRESS = r"(?:[0-9]+(?:~[0-9]+)?|\$|/(?:[^/\\\n]|\\[^\n])*+/I?)"
_S = "|".join(
    rf"s{mark}(?:[^{mark}\\\n]|\\.)*+{mark}(?:[^{mark}\\\n]|\\.)*+{mark}[gpiImM0-9]*+"
    for mark in (re.escape(char) for char in "/|#,@!:+%_~;")
)
_SED = re.compile(
    rf"[\s;]*+(?:(?:{_ADDRESS}(?:\s*,\s*[+~]?{_ADDRESS})?+)?+\s*+!?\s*+"
    rf"(?:{_S}|[pdDPnNgGhHxlz=]|[qQ][0-9]*+|[{{}}]|[aic][ \\][^\n]*+)"
    r"(?=[\s;}]|\Z)[\s;]*+)*+",
    re.DOTALL,
)


def is_plain_sed(script: str) -> bool:
    """Only printing, deleting and replacing: not the commands and flags that run programs, read or write files."""
    return _SED.fullmatch(script) is not None


def is_plain_awk(script: str) -> bool:
    """Nothing that runs a program, reads or writes another file, or loads code."""
    if re.search(r"system|getline|@|ENVIRON|PROCINFO|ARG|\\\n|close|fflush|nawk|load|include", script):
        return False
    return not any(re.search(r"[>|]", statement) for statement in _printing(script))


def _printing(script: str) -> list[str]:
    """The statements that print, where `>` and `|` write; more of the script where it is not plain what belongs to
    one: quotes, slashes and comments may each hide the end of the others."""
    start = script.find("print")
    if start < 0:
        return []
    if "/" in script or "#" in script or "\\" in script:
        return [script[start:] if '"' not in script else script]
    without_texts = re.sub(r'"[^"\n]*"', "", script)
    return [script] if '"' in without_texts else re.findall(r"print[^;}\n]*", without_texts.replace("||", ""))


_JQ = re.compile(r"(?!.*(?:import|include|env|ENV|__|input_filename|get_search_list)).*", re.DOTALL)
_FORMAT = re.compile(r"(?!-)(?:[^%]|%%|%[-+ #0]*[0-9]*(?:\.[0-9]+)?[sdiuxXobcqeEfgG])*+", re.DOTALL)

PLAIN: Mapping[str, Callable[[str], bool]] = {
    "sed": is_plain_sed,
    "awk": is_plain_awk,
    "jq": lambda text: _JQ.fullmatch(text) is not None,
    "format": lambda text: _FORMAT.fullmatch(text) is not None,
}
