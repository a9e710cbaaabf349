"""`gripfast.records.dataclass` is the standard library's, faster to define."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import asdict, field, fields, replace
from typing import Any

import pytest

from gripfast import records


def defined(dataclass: Callable[..., Any], options: dict[str, bool]) -> dict[str, Any]:
    @dataclass(**options)
    class Plain:
        """With all kinds of fields."""

        name: str
        size: int = 3
        tags: list[str] = field(default_factory=list[str], repr=False)
        seen: dict[str, int] = field(default_factory=dict[str, int], compare=False)
        made: int = field(default=7, init=False)
        filled: list[int] = field(default_factory=list[int], init=False)

    @dataclass(**options)
    class One:
        value: int

    @dataclass(**options)
    class Empty:
        pass

    @dataclass(**options)
    class Below(One):
        more: int = 2

        def __str__(self) -> str:
            return "below"

    @dataclass(**options)
    class Own:
        value: int

        def __post_init__(self) -> None:
            object.__setattr__(self, "value", self.value + 1)

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "mine"

    @dataclass(**options)
    class Hashed:
        value: int

        def __hash__(self) -> int:
            return 5

    return {one.__name__: one for one in (Plain, One, Empty, Below, Own, Hashed)}


OPTIONS = [{"frozen": frozen, "slots": slots} for frozen in (False, True) for slots in (False, True)]


@pytest.fixture(params=OPTIONS, ids=str)
def both(request: pytest.FixtureRequest) -> tuple[dict[str, Any], dict[str, Any], dict[str, bool]]:
    options = request.param
    return defined(records.dataclass, options), defined(dataclasses.dataclass, options), options


USES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "repr": lambda of: repr(of["Plain"]("a", tags=["x"])),
    "repr of one inside another": lambda of: repr(of["One"](of["Empty"]())),
    "defaults are not shared": lambda of: of["Plain"]("a").tags is of["Plain"]("a").tags,
    "equal": lambda of: of["Plain"]("a", 1) == of["Plain"]("a", 1, seen={"x": 1}),
    "not equal": lambda of: of["Plain"]("a", 1) == of["Plain"]("a", 2),
    "another class": lambda of: of["One"](1) == of["Below"](1),
    "empty ones are equal": lambda of: of["Empty"]() == of["Empty"](),
    "hash": lambda of: hash(of["One"](1)) == hash(of["One"](1)),
    "hash of a list": lambda of: hash(of["Plain"]("a")),
    "own eq": lambda of: (of["Own"](1) == of["Own"](2), repr(of["Own"](1)), of["Own"](1).value),
    "hash with its own eq": lambda of: type(hash(of["Own"](1))),
    "own hash": lambda of: hash(of["Hashed"](1)),
    "inherited": lambda of: (repr(of["Below"](1)), str(of["Below"](1, 5)), of["Below"](1).more),
    "missing": lambda of: of["Plain"](),
    "too many": lambda of: of["One"](1, 2),
    "unknown": lambda of: of["One"](value=1, other=2),
    "not in init": lambda of: of["Plain"]("a", made=3),
    "set": lambda of: setattr(of["One"](1), "value", 2),
    "delete": lambda of: delattr(of["One"](1), "value"),
    "replace": lambda of: repr(replace(of["Plain"]("a", 1), size=9)),
    "replace what is not in init": lambda of: replace(of["Plain"]("a"), made=9),
    "asdict": lambda of: asdict(of["Plain"]("a", 1, ["x"])),
    "fields": lambda of: [(one.name, one.type, one.init) for one in fields(of["Below"])],
    "match": lambda of: of["Plain"].__match_args__,
    "copy": lambda of: repr(copy.deepcopy(of["Plain"]("a", 1, ["x"]))),
    "names of parameters": lambda of: list(inspect.signature(of["Plain"]).parameters),
    "dictionary": lambda of: hasattr(of["One"](1), "__dict__"),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_it_does_what_the_standard_librarys_does(
    use: Callable[[dict[str, Any]], Any], both: tuple[dict[str, Any], dict[str, Any], dict[str, bool]]
) -> None:
    ours, theirs, _ = both
    assert outcome(use, ours) == outcome(use, theirs)


def outcome(use: Callable[[dict[str, Any]], Any], classes: dict[str, Any]) -> Any:
    try:
        return use(classes)
    except (TypeError, AttributeError, ValueError) as fault:
        return type(fault), str(fault)


@records.dataclass(frozen=True, slots=True)
class Kept:
    name: str
    tags: tuple[str, ...] = ()


def test_one_that_is_frozen_can_be_pickled() -> None:
    kept = Kept("a", ("x",))
    assert pickle.loads(pickle.dumps(kept)) == kept


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_nothing_else_can_be_set_on_one_that_is_frozen_or_has_slots(options: dict[str, bool]) -> None:
    one = defined(records.dataclass, options)["One"](1)
    if options["frozen"] or options["slots"]:
        with pytest.raises(AttributeError):
            one.other = 2
    else:
        one.other = 2
