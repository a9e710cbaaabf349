"""JSON text in, argument model out; every fault of a call told at once, in the caller's own terms."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticSerializationError, from_json, to_json

from holdfast.errors import InvalidArgument
from holdfast.tool.mend import mended
from holdfast.tool.shape import is_open, property_names

Path = tuple[int | str, ...]

_FAULTS_TOLD = 20
_WORDS = {
    "must be a string": ("string_type",),
    "must be an integer": ("int_type", "int_parsing", "int_from_float"),
    "must be a number": ("float_type", "float_parsing", "finite_number", "decimal_type", "decimal_parsing"),
    "must be true or false": ("bool_type", "bool_parsing"),
    "must be null": ("none_required",),
    "must be an array": ("list_type", "tuple_type", "set_type", "frozen_set_type", "iterable_type"),
    "must be an object": (
        "dict_type mapping_type model_type model_attributes_type dataclass_type dict_attributes_type".split()
    ),
}
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_WORDS_OF = {kind: words for words, kinds in _WORDS.items() for kind in kinds}


@dataclass(frozen=True, slots=True)
class _Fault:
    path: Path
    kind: str
    problem: str


class Arguments:
    """Validates the arguments of one tool. Made once, when the tool is defined."""

    __slots__ = ("_extra", "_schema", "_validate", "model")

    def __init__(self, model: type[BaseModel], schema: Mapping[str, Any]) -> None:
        self.model = model
        self._schema = schema
        self._validate = TypeAdapter(model).validator.validate_json
        self._extra: Literal["forbid"] | None = None if is_open(schema) else "forbid"

    def parse(self, raw: str | bytes | Mapping[str, Any] | None) -> BaseModel:
        """Exactly typed arguments pass at once; others are read as what they clearly stand for, or refused."""
        text = raw if isinstance(raw, str) and "NaN" not in raw and "Infinity" not in raw else _json_text(raw)
        try:
            return self._validate(text, strict=True, extra=self._extra)
        except (ValidationError, UnicodeEncodeError):
            return self._lenient(_object(_json_text(raw)))

    def _lenient(self, given: dict[str, Any]) -> BaseModel:
        data = mended(given, self._schema)
        try:
            return self._validate(to_json(data), strict=False, extra=self._extra)
        except ValidationError as fault:
            errors = fault.errors(include_url=False, include_context=False)
            faults = _gathered([_Fault(_path(error, data), error["type"], _problem(error)) for error in errors])
            raise self._refusal(faults, given, data) from None

    def _refusal(self, faults: Sequence[_Fault], *seen: dict[str, Any]) -> InvalidArgument:
        told = [self._tell(fault, *seen) for fault in faults[:_FAULTS_TOLD]]
        more = [f"and {len(faults) - _FAULTS_TOLD} more"] if len(faults) > _FAULTS_TOLD else []
        lead = f"{len(faults)} problems: " if len(faults) > 1 else ""
        listed = [{"argument": _place(f.path), "problem": f.problem} for f in faults[:_FAULTS_TOLD]]
        return InvalidArgument(lead + "; ".join(told + more), details={"errors": listed})

    def _tell(self, fault: _Fault, *seen: dict[str, Any]) -> str:
        if not fault.path:
            return fault.problem
        place = f"`{_place(fault.path)}`"
        if fault.kind in _UNKNOWN:
            return f"{place}: no such argument{self._near(fault.path)}"
        if fault.kind != "missing" and fault.problem.startswith("must be"):
            return f"{place}: {fault.problem}, not {_shown(_at(fault.path, *seen))}"
        return f"{place}: {fault.problem}"

    def _near(self, path: Path) -> str:
        names = property_names(self._schema, path[:-1])
        near = difflib.get_close_matches(str(path[-1])[:80], names, 1, 0.5)
        if near:
            return f", did you mean `{near[0]}`?"
        return f"; there are {', '.join(f'`{name}`' for name in names)}" if names else "; it takes none"


def _json_text(raw: str | bytes | Mapping[str, Any] | None) -> bytes:
    if isinstance(raw, bytes):
        text = raw
    elif isinstance(raw, str):
        text = _encoded(raw)
    else:
        text = _dumped(raw or {})
    if not text or text.isspace() or text == b"null":
        return b"{}"  # some models send nothing at all where there are no arguments
    if b"NaN" in text or b"Infinity" in text:
        _refuse_not_a_number(text)
    return text


def _encoded(raw: str) -> bytes:
    try:
        return raw.encode()
    except UnicodeEncodeError as fault:
        raise InvalidArgument(
            f"the arguments hold half a surrogate pair at character {fault.start}; send valid Unicode"
        ) from None


def _dumped(raw: Mapping[str, Any]) -> bytes:
    try:
        return to_json(raw, inf_nan_mode="constants")
    except (PydanticSerializationError, ValueError, RecursionError) as fault:
        reason = str(fault).splitlines()[0][:200]
        raise InvalidArgument(f"the arguments are not JSON: {reason}") from None


def _refuse_not_a_number(text: bytes) -> None:
    """The words are there; only a parser knows whether they stand inside a string."""
    try:
        from_json(text, allow_inf_nan=False)
    except ValueError:
        _object(text)
        raise InvalidArgument("NaN and Infinity are not JSON; send a number, null or a string") from None


def _object(text: bytes) -> dict[str, Any]:
    try:
        data = from_json(text)
    except ValueError as fault:
        raise InvalidArgument(f"the arguments are not valid JSON ({fault}); send one JSON object") from None
    if not isinstance(data, dict):
        raise InvalidArgument(f"the arguments must be a JSON object, not {_shown(data)}")
    return cast("dict[str, Any]", data)


def _path(error: ErrorDetails, data: Any) -> Path:
    """The way to the value in the caller's JSON; steps that only name a branch of a union are passed over."""
    path: list[int | str] = []
    for step in error["loc"]:
        if _has(data, step):
            path.append(step)
            data = data[step]
    return (*path, error["loc"][-1]) if error["type"] == "missing" else tuple(path)


def _has(data: Any, step: int | str) -> bool:
    if isinstance(data, dict):
        return step in data
    return isinstance(data, list) and isinstance(step, int) and step < len(cast("list[Any]", data))


def _problem(error: ErrorDetails) -> str:
    if error["type"] == "missing":
        return "required"
    if error["type"] in _UNKNOWN:
        return "no such argument"
    if error["type"] in _WORDS_OF:
        return _WORDS_OF[error["type"]]
    text = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    for theirs, ours in (("Input should be", "must be"), ("String should", "must")):
        text = text.replace(theirs, ours)
    return text


def _gathered(faults: Sequence[_Fault]) -> list[_Fault]:
    """One fault a place: the branches of a union that all failed become one sentence with `or`.

    Where one branch got further, the others, which wanted a value of another kind, have nothing to say.
    """
    by_path: dict[Path, _Fault] = {}
    entered = {fault.path[:length] for fault in faults for length in range(len(fault.path))}
    for fault in faults:
        if fault.kind in _WORDS_OF and fault.path in entered:
            continue
        first = by_path.setdefault(fault.path, fault)
        if fault.problem not in first.problem:
            either = f"{first.problem} or {fault.problem.removeprefix('must be ')}"
            by_path[fault.path] = _Fault(fault.path, first.kind, either)
    return list(by_path.values())


def _at(path: Path, given: Any, read: Any) -> Any:
    """What stands there in the arguments as they came; inside of JSON text, as it was read."""
    here = given
    for step in path:
        if not _has(here, step):
            return _at(path, read, read)
        here = here[step]
    return here


def _place(path: Path) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
    return text if len(text) <= 80 else f"{text[:77]}..."


def _shown(value: Any) -> str:
    text = to_json(value).decode()
    return text if len(text) <= 80 else f"{text[:77]}..."
