"""JSON text in, argument model out, in one pass; every fault of a call told at once."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticSerializationError, to_json

from holdfast.errors import InvalidArgument

_NOT_A_NUMBER = (b"NaN", b"Infinity")
_WANTS_STRUCTURE = frozenset(
    {
        "list_type",
        "dict_type",
        "model_type",
        "model_attributes_type",
        "tuple_type",
        "set_type",
        "frozen_set_type",
    }
    | {"dataclass_type", "mapping_type", "iterable_type", "dict_attributes_type"}
)


class Arguments:
    """Validates the arguments of one tool. Made once, when the tool is defined."""

    __slots__ = ("_names", "_validate", "model")

    def __init__(self, model: type[BaseModel]) -> None:
        self.model = model
        self._validate = TypeAdapter(model).validator.validate_json
        self._names = [field.alias or name for name, field in model.model_fields.items()]

    def parse(self, raw: str | bytes | Mapping[str, Any]) -> BaseModel:
        text = _json_text(raw)
        try:
            return self._validate(text)
        except ValidationError as fault:
            return self._mend(text, fault)

    def _mend(self, text: bytes, fault: ValidationError) -> BaseModel:
        """What models often send and clearly mean: an array as JSON text, null for "not given"."""
        errors = fault.errors(include_url=False)
        if any(error["type"] == "json_invalid" for error in errors) or not errors[0]["loc"]:
            self._refuse(errors)
        data = json.loads(text)
        if not [error for error in errors if _mended(data, error)]:
            self._refuse(errors)
        try:
            return self._validate(json.dumps(data))
        except ValidationError as second:
            self._refuse(second.errors(include_url=False))

    def _refuse(self, errors: Sequence[ErrorDetails]) -> NoReturn:
        told = [self._tell(error) for error in errors]
        lead = f"{len(told)} problems: " if len(told) > 1 else ""
        faults = [{"argument": _place(error["loc"]), "problem": _problem(error)} for error in errors]
        raise InvalidArgument(lead + "; ".join(told), details={"errors": faults})

    def _tell(self, error: ErrorDetails) -> str:
        place, kind = _place(error["loc"]), error["type"]
        if kind == "json_invalid":
            return f"the arguments are not valid JSON: {error.get('ctx', {}).get('error', error['msg'])}"
        if not error["loc"]:
            return f"the arguments must be a JSON object, not {_shown(error['input'])}"
        if kind == "extra_forbidden":
            return f"`{place}`: no such argument{self._near(place)}"
        if kind == "missing":
            return f"`{place}`: required"
        return f"`{place}`: {_problem(error)}, not {_shown(error['input'])}"

    def _near(self, place: str) -> str:
        near = difflib.get_close_matches(place, self._names, 1, 0.5)
        if near:
            return f", did you mean `{near[0]}`?"
        return f"; there are {', '.join(f'`{name}`' for name in self._names)}" if self._names else "; it takes none"


def _json_text(raw: str | bytes | Mapping[str, Any]) -> bytes:
    if isinstance(raw, bytes):
        text = raw
    elif isinstance(raw, str):
        text = _encoded(raw)
    else:
        text = _dumped(raw)
    if not text or text.isspace():
        return b"{}"  # some models send nothing at all where there are no arguments
    if any(word in text for word in _NOT_A_NUMBER):
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
    def refuse(word: str) -> NoReturn:
        raise InvalidArgument(f"the arguments hold {word}, which is not JSON; send a number, null or a string")

    try:
        json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return  # told by validation, with the place


def _mended(data: Any, error: ErrorDetails) -> bool:
    """Changes the one value an error is about, where it clearly stands for another. True if it did."""
    holder, last = _holder(data, error["loc"])
    if holder is None:
        return False
    value = holder[last]
    if value is None and isinstance(holder, dict) and error["type"] != "missing":
        del cast("dict[str, Any]", holder)[cast("str", last)]
        return True
    if isinstance(value, str) and error["type"] in _WANTS_STRUCTURE:
        return _opened(holder, last, value)
    return False


def _opened(holder: Any, last: int | str, text: str) -> bool:
    try:
        inner = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(inner, (list, dict)):
        return False
    holder[last] = inner
    return True


def _holder(data: Any, loc: tuple[int | str, ...]) -> tuple[Any, int | str]:
    """The object or array that holds the value at loc; steps that a union adds are passed over."""
    holder, last = None, ""
    for step in loc:
        if _has(data, step):
            holder, last, data = data, step, data[step]
    return holder, last


def _has(data: Any, step: int | str) -> bool:
    if isinstance(data, dict):
        return step in data
    return isinstance(data, list) and isinstance(step, int) and step < len(cast("list[Any]", data))


def _place(loc: tuple[int | str, ...]) -> str:
    return ".".join(str(step) for step in loc)


def _problem(error: ErrorDetails) -> str:
    text = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    text = text.replace("Input should be", "must be")
    return text[:1].lower() + text[1:] if text[:2] != text[:2].upper() else text


def _shown(value: Any) -> str:
    try:
        text = to_json(value).decode()
    except (PydanticSerializationError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= 80 else f"{text[:77]}..."
