"""Line ends: which ones a text has, and new text with those of the old."""

from __future__ import annotations

import re

_LINE_END = rb"\r?\n"


def line_ends(body: bytes) -> list[bytes]:
    """Every line end of a text, in order."""
    return re.findall(_LINE_END, body)


def usual_end(body: bytes) -> bytes:
    """The line end most lines have; LF when there is none."""
    returns = body.count(b"\r\n")
    return b"\r\n" if returns * 2 > body.count(b"\n") else b"\n"


def with_ends(text: bytes, ends: list[bytes], usual: bytes) -> bytes:
    """A text whose lines end in LF, with these line ends instead; past them, the usual one."""
    if b"\r\n" in text or (usual == b"\n" and b"\r\n" not in ends):
        return text
    lines = text.split(b"\n")
    following = [*ends[: len(lines) - 1], *[usual] * (len(lines) - 1 - len(ends)), b""]
    return b"".join(part for pair in zip(lines, following, strict=True) for part in pair)


def rewritten(before: bytes, content: bytes) -> bytes:
    """New content for a file with the line ends (per line where mixed) and the final newline of the old one."""
    if not before:
        return content
    if content and before.endswith(b"\n") != content.endswith(b"\n"):
        content = content + b"\n" if before.endswith(b"\n") else content[:-1]
    if b"\r\n" not in before or b"\r\n" in content:
        return content
    return with_ends(content, _inherited_ends(before, content), usual_end(before))


def _inherited_ends(before: bytes, content: bytes) -> list[bytes]:
    """The line ends the lines of the new content had in the old: those at the head and at the tail that stayed."""
    ends, usual = line_ends(before), usual_end(before)
    if len(set(ends)) == 1:
        return []
    old = before.replace(b"\r\n", b"\n").split(b"\n")[: len(ends)]
    new = content.split(b"\n")[: content.count(b"\n")]
    most = min(len(old), len(new))
    head = next((at for at in range(most) if old[at] != new[at]), most)
    tail = next((at for at in range(most - head) if old[-1 - at] != new[-1 - at]), most - head)
    kept = ends[len(ends) - tail :] if tail else []
    return [*ends[:head], *[usual] * (len(new) - head - tail), *kept]
