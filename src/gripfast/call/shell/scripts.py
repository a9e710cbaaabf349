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
    return not (re.search("print", script) and re.search(r"[>|]", script))


_JQ = re.compile(r"(?!.*(?:import|include|env|ENV|__|input_filename|get_search_list)).*", re.DOTALL)
_FORMAT = re.compile(r"(?!-)(?:[^%]|%%|%[-+ #0]*[0-9]*(?:\.[0-9]+)?[sdiuxXobcqeEfgG])*+", re.DOTALL)

PLAIN: Mapping[str, Callable[[str], bool]] = {
    "sed": is_plain_sed,
    "awk": is_plain_awk,
    "jq": lambda text: _JQ.fullmatch(text) is not None,
    "format": lambda text: _FORMAT.fullmatch(text) is not None,
}
