"""Which features of the kernel are used: those of this system, less the ones GRIPFAST_WITHOUT switches off."""

from __future__ import annotations

import functools
import os
import sys
from typing import Literal, TypeAlias, get_args

from gripfast.errors import InvalidArgument

Feature: TypeAlias = Literal["openat2", "landlock", "namespaces", "subreaper", "inotify"]

# Read only here; the broker, which imports nothing of ours, gets it from the server.
# The tests set it to try on Linux how gripfast works on systems without these features.
SWITCH = "GRIPFAST_WITHOUT"
_FEATURES = frozenset[str](get_args(Feature))


def may_use(feature: Feature) -> bool:
    """Whether to try a feature: this is Linux, and the feature is not switched off."""
    return sys.platform == "linux" and feature not in switched_off()


def switched_off() -> frozenset[str]:
    """The features that GRIPFAST_WITHOUT names, separated by commas or spaces."""
    return _named(os.environ.get(SWITCH, ""))


def why_not(feature: Feature, otherwise: str) -> str:
    """Why a feature is not used, for a message: it is switched off, or else the caller's own reason."""
    return f"switched off by {SWITCH}" if feature in switched_off() else otherwise


@functools.cache
def _named(text: str) -> frozenset[str]:
    names = frozenset(text.replace(",", " ").split())
    if unknown := sorted(names - _FEATURES):
        known = ", ".join(sorted(_FEATURES))
        raise InvalidArgument(f"{SWITCH} names `{unknown[0]}`, which is not one of {known}; correct or unset it")
    return names
