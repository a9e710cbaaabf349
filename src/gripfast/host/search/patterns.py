"""Checks a pattern for Grep: what no search could take, and what ripgrep refuses."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gripfast.errors import InvalidArgument, InvalidRegex
from gripfast.host.search.ripgrep import ask, find_rg
from gripfast.host.search.search_types import GrepOptions
from gripfast.text.globs import compile_filter
from gripfast.text.near import did_you_mean, near

MAX_PATTERN_CHARACTERS = 8 * 1024


def check_options(pattern: str, options: GrepOptions) -> None:
    """Raises for options that no search could take, before anything is opened."""
    if not pattern:
        raise InvalidArgument("the pattern is empty; give a regex to look for")
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise InvalidArgument(f"the pattern has {len(pattern)} characters; give at most {MAX_PATTERN_CHARACTERS}")
    for name, text in (("pattern", pattern), ("type", options.type or "")):
        if "\0" in text:
            raise InvalidArgument(f"the {name} contains a NUL character, which no text can contain; remove it")
    if options.glob is not None:
        compile_filter(options.glob.removeprefix("!"))


def check_pattern(pattern: str, options: GrepOptions, *, roots: Iterable[str] | None = None) -> None:
    """Raises what ripgrep refuses about a pattern or a file type, without opening a file."""
    rg = find_rg(roots)
    code, _, errors = ask(rg, ["-j1", *matching_arguments(pattern, options), "--", "-"])
    if code != 2:
        return
    if options.type is not None and b"unrecognized file type" in errors:
        raise _unknown_type(rg, options.type)
    raise InvalidRegex(f"the regex {_shortened(pattern)!r} can't be used: {regex_fault(errors)}")


def regex_fault(errors: bytes) -> str:
    """What ripgrep says against a regex, in short, and what to do."""
    text = errors.decode("utf-8", "replace").strip().removeprefix("rg: ")
    if "look-around" in text.partition("\nConsider")[0]:
        return "look-ahead and look-behind are not supported; search for less, then choose among the lines"
    if "backreferences are not" in text:
        return "backreferences are not supported; search for less, then choose among the lines"
    text = text.partition("\nConsider enabling PCRE2")[0]
    text = re.sub(r"(?s)\s*Consider enabling multiline mode with the --multiline.*", "; set multiline=true", text)
    text = re.sub(r"^regex parse error:\n(?:\s.*\n)*error: ", "", text)
    literal = re.search("unclosed|unopened|repetition|capture group|flag", text)
    advice = "; put a backslash before ( ) [ ] { } * + ? to find them literally" if literal else ""
    return f"{text.strip()}{advice}"


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."


def _unknown_type(rg: str, name: str) -> InvalidArgument:
    listed = ask(rg, ["--type-list"])[1]
    known = [line.partition(":")[0] for line in listed.decode("utf-8", "replace").splitlines()]
    hint = did_you_mean(name, near(name, known), 3, none="use `glob` instead")
    return InvalidArgument(f"the file type {_shortened(name)!r} is not known to ripgrep; {hint}")


def matching_arguments(pattern: str, options: GrepOptions) -> list[str]:
    """The options that say what matches."""
    arguments = ["--regex-size-limit=10M", "--crlf"]
    if options.ignore_case:
        arguments.append("--ignore-case")
    if options.multiline:
        arguments += ["--multiline", "--multiline-dotall"]
    if options.type is not None:
        arguments.append(f"--type={options.type}")
    return [*arguments, "-e", pattern]
