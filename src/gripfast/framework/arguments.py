"""JSON text in, argument model out. All faults of a call are reported at once, in terms of the JSON that was sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticSerializationError, from_json, to_json

from gripfast.errors import InvalidArgument
from gripfast.framework.coerce import coerced
from gripfast.framework.shape import is_open, leaves, property_names
from gripfast.records import dataclass
from gripfast.text.near import did_you_mean

Path = tuple[int | str, ...]

_MAX_FAULTS_SHOWN = 20
_PROBLEMS = {
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
_PROBLEM_OF = {kind: problem for problem, kinds in _PROBLEMS.items() for kind in kinds}


@dataclass(frozen=True, slots=True)
class _ArgumentFault:
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

    def parse(self, raw: str | bytes | Mapping[str, Any] | None, unlisted: frozenset[str] = frozenset()) -> BaseModel:
        """Tries strict validation first; if that fails, accepts what a value unambiguously means, or refuses it.
        Names in `unlisted` are accepted, but no error offers them."""
        text = raw if isinstance(raw, str) and "NaN" not in raw and "Infinity" not in raw else _json_text(raw)
        try:
            return self._validate(text, strict=True, extra=self._extra)
        except (ValidationError, UnicodeEncodeError):
            return self._lenient(_object(_json_text(raw)), unlisted)

    def _lenient(self, sent: dict[str, Any], unlisted: frozenset[str]) -> BaseModel:
        data = coerced(sent, self._schema)
        try:
            return self._validate(to_json(data), strict=False, extra=self._extra)
        except ValidationError as fault:
            errors = fault.errors(include_url=False, include_context=False)
            faults = _one_fault_per_path(
                [_ArgumentFault(_path(error, data), error["type"], _problem(error, self._schema)) for error in errors]
            )
            raise self._refusal(faults, unlisted, sent, data) from None

    def _refusal(
        self, faults: Sequence[_ArgumentFault], unlisted: frozenset[str], *versions: dict[str, Any]
    ) -> InvalidArgument:
        shown = [self._describe(fault, unlisted, *versions) for fault in faults[:_MAX_FAULTS_SHOWN]]
        more = [f"and {len(faults) - _MAX_FAULTS_SHOWN} more"] if len(faults) > _MAX_FAULTS_SHOWN else []
        lead = f"{len(faults)} problems: " if len(faults) > 1 else ""
        listed = [{"argument": _place(f.path), "problem": f.problem} for f in faults[:_MAX_FAULTS_SHOWN]]
        return InvalidArgument(lead + "; ".join(shown + more), details={"errors": listed})

    def _describe(self, fault: _ArgumentFault, unlisted: frozenset[str], *versions: dict[str, Any]) -> str:
        if not fault.path:
            return fault.problem
        place = f"`{_place(fault.path)}`"
        if fault.kind in _UNKNOWN:
            return f"{place}: no such argument{self._near(fault.path, unlisted)}"
        if fault.kind != "missing" and fault.problem.startswith("must be"):
            return f"{place}: {fault.problem}, not {_shown(_at(fault.path, *versions))}"
        return f"{place}: {fault.problem}"

    def _near(self, path: Path, unlisted: frozenset[str]) -> str:
        *above, name = path
        names = [one for one in property_names(self._schema, tuple(above)) if above or one not in unlisted]
        return f", {did_you_mean(str(name), names, none='it takes no arguments')}"


def _json_text(raw: str | bytes | Mapping[str, Any] | None) -> bytes:
    if isinstance(raw, bytes):
        text = raw
    elif isinstance(raw, str):
        text = _encoded(raw)
    else:
        text = _dumped(raw or {})
    if not text or text.isspace() or text == b"null":
        return b"{}"  # some models send nothing at all when a tool has no arguments
    if b"NaN" in text or b"Infinity" in text:
        _refuse_not_a_number(text)
    return text


def _encoded(raw: str) -> bytes:
    try:
        return raw.encode()
    except UnicodeEncodeError as fault:
        raise InvalidArgument(
            f"the arguments contain a lone surrogate at character {fault.start}; send valid Unicode"
        ) from None


def _dumped(raw: Mapping[str, Any]) -> bytes:
    try:
        return to_json(raw, inf_nan_mode="constants")
    except (PydanticSerializationError, ValueError, RecursionError) as fault:
        reason = str(fault).splitlines()[0][:200]
        raise InvalidArgument(f"the arguments are not JSON: {reason}") from None


def _refuse_not_a_number(text: bytes) -> None:
    """The text contains NaN or Infinity; only parsing tells whether that is inside a string, where it is allowed."""
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
    """The path to the value in the caller's JSON, without the steps by which pydantic names a branch of a union."""
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


def _problem(error: ErrorDetails, schema: Mapping[str, Any]) -> str:
    if error["type"] == "missing":
        return "required"
    if error["type"] in _UNKNOWN:
        return "no such argument"
    if error["type"] in _PROBLEM_OF:
        return _PROBLEM_OF[error["type"]]
    if error["type"] in ("less_than_equal", "greater_than_equal"):
        return _bounds(error["msg"], leaves(schema, error["loc"]))
    text = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    for pydantic_text, shorter in (("Input should be", "must be"), ("String should", "must")):
        text = text.replace(pydantic_text, shorter)
    return text


def _bounds(text: str, numbers: Sequence[Mapping[str, Any]]) -> str:
    """The range that a number must be in, both ends if it has them, from its schema and pydantic's text."""
    ends = [(one["minimum"], one["maximum"]) for one in numbers if "minimum" in one and "maximum" in one]
    if len(ends) == 1:
        return f"must be from {ends[0][0]} to {ends[0][1]}"
    text = text.replace("Input should be", "must be")
    return text.replace("greater than or equal to", "at least").replace("less than or equal to", "at most")


def _one_fault_per_path(faults: Sequence[_ArgumentFault]) -> list[_ArgumentFault]:
    """At most one fault for each path: when all branches of a union fail there, their problems are joined by `or`.

    If one branch matched the value's type and failed inside it, the type errors of the other branches are dropped.
    """
    by_path: dict[Path, _ArgumentFault] = {}
    entered = {fault.path[:length] for fault in faults for length in range(len(fault.path))}
    for fault in faults:
        if fault.kind in _PROBLEM_OF and fault.path in entered:
            continue
        first = by_path.setdefault(fault.path, fault)
        if fault.problem not in first.problem:
            either = f"{first.problem} or {fault.problem.removeprefix('must be ')}"
            by_path[fault.path] = _ArgumentFault(fault.path, first.kind, either)
    return list(by_path.values())


def _at(path: Path, sent: Any, parsed: Any) -> Any:
    """The value at a path in the arguments as they were sent, or as parsed from JSON text sent in its place."""
    here = sent
    for step in path:
        if not _has(here, step):
            return _at(path, parsed, parsed)
        here = here[step]
    return here


def _place(path: Path) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
    return text if len(text) <= 80 else f"{text[:77]}..."


def _shown(value: Any) -> str:
    text = to_json(value).decode()
    return text if len(text) <= 80 else f"{text[:77]}..."
