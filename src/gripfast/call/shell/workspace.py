"""Which words of a command, and which paths, are inside the workspace."""

from __future__ import annotations

import re

from gripfast.records import dataclass
from gripfast.text.below import is_below

# A path that may lie elsewhere: absolute, or with a step up, wherever in the word it may begin.
# A `/` after a wildcard or a closing bracket goes on with a relative path: `src/**/*.ts`.
_ELSEWHERE = r"(?:^|[^\w.\-/*?\]}])/|(?:^|[^\w.\-])\.\.(?:/|$)|/\.\.(?:/|$)"


@dataclass(frozen=True, slots=True)
class Workspace:
    """The places that words may name. Without roots every absolute path counts as outside."""

    roots: tuple[str, ...] = ()

    def outside(self, word: str) -> bool:
        """Whether a word of a command may name a place outside; yes if in doubt."""
        if re.search(_ELSEWHERE, word) is None:
            return False
        return word != "/dev/null" and not self._below_a_root(word)

    def holds(self, path: str) -> bool:
        """Whether a path, relative to the workspace or absolute, is inside."""
        return self._below_a_root(path) if path.startswith("/") else ".." not in path.split("/")

    def _below_a_root(self, word: str) -> bool:
        if ".." in word.split("/"):
            return False
        return is_below(word, *filter(None, self.roots))
