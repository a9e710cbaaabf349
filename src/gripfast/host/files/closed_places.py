"""Whether a place is denied by a pattern, protected, or our own; the same for file tools and commands."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence

from gripfast.host.files.named_by_git import NamedByGit
from gripfast.host.files.patterns import Patterns
from gripfast.host.files.scope import PROTECTED, RUN_BY_CI, Scope
from gripfast.host.program.own import is_own
from gripfast.text.below import after

# Protected names for which no question is asked: git's own, and what configures this program.
_NEVER_ASKED = (".git", "git~1", "**/.config/gripfast", "gripfast.toml", ".gripfast.toml", ".gripfast")
OWN_CODE = "what gripfast itself runs"
OWN_SECRET = "gripfast's own state and secrets"
NAMED_BY_GIT = "your git configuration names it"


class ClosedPlaces:
    """Answers for real, absolute paths. A pattern is judged from every root that contains the path."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._roots = tuple(directory.real for directory in scope.roots)
        self._never = Patterns(text for text in scope.protect.texts if text in _NEVER_ASKED)
        self._run_here = Patterns(_run_here(scope.protect.texts))
        self._fixed = Patterns(_fixed(scope.protect.texts))
        self.named_by_git = NamedByGit(self._roots) if ".git" in scope.protect.texts else None

    def denied(self, absolute: str) -> str | None:
        """Why a place may be neither read nor written, in a few words; None when it may."""
        if pattern := self._matched(self._scope.deny, absolute):
            return f"the deny pattern `{pattern}`"
        return OWN_SECRET if is_own(absolute, secret=True) else None

    def protected(self, absolute: str, *, lifted: bool = False) -> str | None:
        """Why a place may not be written, in a few words; None if it may be. `lifted`: a person said yes."""
        if pattern := self._matched(self._never if lifted else self._scope.protect, absolute):
            return f"`{pattern}`"
        if not lifted and self._is_named_by_git(absolute):
            return NAMED_BY_GIT
        return OWN_CODE if is_own(absolute) else None

    def _is_named_by_git(self, absolute: str) -> bool:
        return self.named_by_git is not None and absolute in self.named_by_git.near(os.path.dirname(absolute))

    def runs_here(self, absolute: str) -> bool:
        """Whether a place is protected for any reason other than that a CI service runs it."""
        is_closed = self._matched(self._run_here, absolute) is not None or is_own(absolute)
        return is_closed or self._is_named_by_git(absolute)

    def may_move(self, absolute: str) -> bool:
        """Whether git may replace what is at a protected place by a version of the user's."""
        is_fixed = self._matched(self._fixed, absolute) is not None or is_own(absolute)
        return not is_fixed and not self._is_named_by_git(absolute)

    def _matched(self, patterns: Patterns, absolute: str) -> str | None:
        if not patterns:
            return None
        found = (patterns.find(relative, absolute) for relative in self._from_roots(absolute))
        return next((pattern for pattern in found if pattern is not None), None)

    def _from_roots(self, absolute: str) -> Iterator[str]:
        """The path relative to each root that contains it, or to `/` if none does."""
        inside = [rest for root in self._roots if (rest := after(root, absolute)) is not None]
        return iter(inside or [absolute.lstrip("/")])


def _run_here(texts: Sequence[str]) -> Iterator[str]:
    """The protected names without those of CI services that are protected by default."""
    chosen = _chosen(texts)
    return (text for text in texts if text not in RUN_BY_CI or text in chosen)


def _fixed(texts: Sequence[str]) -> Iterator[str]:
    """The protected names that git may not move either."""
    fixed = {*_NEVER_ASKED, ".gitmodules", *_chosen(texts)}
    return (text for text in texts if text in fixed)


def _chosen(texts: Sequence[str]) -> Collection[str]:
    """The names that the user has added, or a list of the user's own: protected for every reason."""
    is_usual = len(set(PROTECTED).intersection(texts)) > len(PROTECTED) // 2
    return {text for text in texts if text not in PROTECTED or texts.count(text) > 1} if is_usual else texts
