"""Grep: the lines that match, in path order, in bounded memory."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gripfast.host.search.arguments import common_arguments, target, type_hint
from gripfast.host.search.hits import MAX_LINE_BYTES, ChosenLines, FileHits, FirstHits, HitLine, HitReader, window
from gripfast.host.search.patterns import check_pattern, matching_arguments
from gripfast.host.search.reached import is_reached_without_links
from gripfast.host.search.ripgrep import TIMEOUT_SECONDS, find_rg, knows_encoding
from gripfast.host.search.running import RipgrepRun, run_rg
from gripfast.host.search.search_types import GrepOptions, GrepResult, SearchPlace
from gripfast.host.search.stop import Stop
from gripfast.host.search.utf8_files import Utf8Files, is_utf8
from gripfast.records import dataclass
from gripfast.text.globs import Glob, compile_filter


@dataclass(frozen=True, slots=True)
class _EncodingPass:
    """One run of rg over the place, in one encoding: its options, and which files it is about."""

    options: GrepOptions
    keep: Callable[[str], bool] | None


def grep(
    place: SearchPlace,
    pattern: str,
    options: GrepOptions,
    *,
    stop: Stop | None = None,
    seconds: float = TIMEOUT_SECONDS,
) -> GrepResult:
    """The lines that match `pattern` beneath a place. A bad pattern is refused before anything is opened.

    With an encoding, every file is searched in the one it is in: the files that are UTF-8 in a first pass, the others
    in a second one.
    """
    by_file = options.mode != "content"
    first = FirstHits(options.offset + options.limit, by_file=by_file, after=options.after)
    run = functools.partial(run_rg, place, stop=stop or Stop(), deadline=time.monotonic() + seconds)
    as_bytes = options.encoding is not None and not _is_known(options.encoding, place)
    passes = _passes(place, replace(options, encoding=None) if as_bytes else options)
    ends = [_search(place, pattern, each, first, run) for each in passes]
    runs = [run for run, _ in ends]
    if any(run.code == 2 for run in runs) and not first.files:
        check_pattern(pattern, options, roots=(place.root_path, *place.roots))
    files = _trusted(place, first.in_order(), runs)
    if by_file:
        shown = tuple(files[options.offset : options.offset + options.limit])
    else:
        shown = window(files, options.offset, options.limit, before=options.before, after=options.after)
        for each in passes:
            shown = _with_long_lines(place, pattern, each, shown, run)
    return GrepResult(
        shown,
        first.files,
        first.matches,
        sum(binary for _, binary in ends),
        max(run.complaint_count for run in runs),
        any(run.timed_out for run in runs),
        options.encoding if as_bytes else None,
    )


def _passes(place: SearchPlace, options: GrepOptions) -> list[_EncodingPass]:
    keep = _keeps(place, options)
    if options.encoding is None:
        return [_EncodingPass(options, keep)]
    plain = replace(options, encoding=None)
    if place.file is not None:
        return [_EncodingPass(plain if is_utf8(place.file) else options, keep)]
    files = Utf8Files(place.root)
    return [
        _EncodingPass(plain, lambda path: (keep is None or keep(path)) and files.has(path)),
        _EncodingPass(options, lambda path: (keep is None or keep(path)) and not files.has(path)),
    ]


def _search(
    place: SearchPlace, pattern: str, one: _EncodingPass, into: FirstHits, run: Callable[..., RipgrepRun]
) -> tuple[RipgrepRun, int]:
    """Adds what one pass finds to the hits. Returns how it ended, and how many binary files matched."""
    context = bool(one.options.before or one.options.after) and one.options.mode == "content"
    reader = HitReader(into, keep=one.keep, context=context)
    ended = run(_grep_arguments(place, pattern, one.options), reader.feed)
    reader.close()
    return ended, reader.binary_files


def _trusted(place: SearchPlace, files: list[FileHits], runs: Sequence[RipgrepRun]) -> list[FileHits]:
    if place.file is not None:
        return [replace(hits, path=place.below) for hits in files]
    if all(run.confined for run in runs) or not place.confined:
        return files
    return [hits for hits in files if is_reached_without_links(place.root, hits.path)]


def _with_long_lines(
    place: SearchPlace,
    pattern: str,
    one: _EncodingPass,
    files: tuple[FileHits, ...],
    run: Callable[..., RipgrepRun],
) -> tuple[FileHits, ...]:
    """The same hits, with the long lines that this pass left out, cut around their match."""
    missing = {
        hits.path: numbers
        for hits in files
        if (numbers := {line.number for line in hits.lines if line.is_left_out})
        and (one.keep is None or one.keep(hits.path))
    }
    if not missing:
        return files
    if place.file is not None:
        chosen = ChosenLines({b"<stdin>": missing[place.below]})
    else:
        chosen = ChosenLines({os.fsencode(path): numbers for path, numbers in missing.items()})
    reader = HitReader(chosen, context=True, columns=True)
    run(_grep_arguments(place, pattern, one.options, only=[f"./{path}" for path in missing]), reader.feed)
    reader.close()
    return tuple(replace(hits, lines=_filled(place, hits, chosen.found)) for hits in files)


def _filled(place: SearchPlace, hits: FileHits, found: Mapping[tuple[str, int], HitLine]) -> tuple[HitLine, ...]:
    path = hits.path if place.file is None else "<stdin>"
    full = (found.get((path, line.number), line) if line.is_left_out else line for line in hits.lines)
    return tuple(replace(new, is_match=old.is_match) for old, new in zip(hits.lines, full, strict=True))


def _grep_arguments(place: SearchPlace, pattern: str, options: GrepOptions, *, only: Sequence[str] = ()) -> list[str]:
    """The whole command line; with `only`, the one that fetches long lines of these files."""
    arguments = common_arguments(place, options.include_ignored)
    if options.encoding:
        arguments.append(f"--encoding={_label(options.encoding)}")
    arguments += ["--binary", "--no-mmap", "--heading", "--null", "-n", "-H"]
    if options.mode == "content":
        arguments += [f"-B{options.before}", f"-A{options.after}"]
    if options.mode == "files_with_matches":
        arguments.append("--max-count=1")
    if only:
        arguments.append("--column")
    else:
        arguments.append(f"--max-columns={MAX_LINE_BYTES if options.mode == 'content' else 1}")
        arguments += _hint(options.glob, options.type)
    targets = ["-"] if place.file is not None else only or [target(place)]
    return [*arguments, *matching_arguments(pattern, options), "--", *targets]


def _is_known(encoding: str, place: SearchPlace) -> bool:
    return knows_encoding(find_rg((place.root_path, *place.roots)), _label(encoding))


def _label(encoding: str) -> str:
    """A codec of Python as ripgrep calls it (https://encoding.spec.whatwg.org/#names-and-labels)."""
    return encoding.replace("_", "-")


def _hint(glob: str | None, kind: str | None) -> list[str]:
    """What spares rg the files that the glob won't let through. Types add up: one asked for leaves no hint."""
    if glob is None or glob.startswith("!") or kind is not None:
        return []
    return type_hint(compile_filter(glob).name_hint)


def _keeps(place: SearchPlace, options: GrepOptions) -> Callable[[str], bool] | None:
    """Which paths count: not hidden by the place, and let through by the glob, read from where the search is."""
    if options.glob is None or place.file is not None:
        return place.keep if place.file is None else None
    negated = options.glob.startswith("!")
    glob = compile_filter(options.glob[1:] if negated else options.glob)
    skip = len(place.below) + 1 if place.below else 0

    def keep(path: str) -> bool:
        inside = path[skip:]
        through = not _meets(glob, inside) if negated else glob.matches(inside)
        return through and (place.keep is None or place.keep(path))

    return keep


def _meets(glob: Glob, path: str) -> bool:
    """Whether a path or a directory above it matches."""
    return glob.matches(path) or any(
        glob.matches(path[:at]) or glob.matches(path[: at + 1]) for at, char in enumerate(path) if char == "/"
    )
