"""Arguments that are plain values, read without pydantic, whose import takes longer than most calls.

What is right at first sight is read here; whatever else was sent is left to `Arguments`, which knows what a value may
mean and how to say what is wrong. So both accept the same, and say the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gripfast.errors import ToolError
from gripfast.records import dataclass

if TYPE_CHECKING:
    from gripfast.framework.definition import RawArguments, ReadsArguments

# Texts with these are left to `Arguments`: Python's `json` takes what JSON does not allow.
_NOT_PLAIN = ("NaN", "Infinity", "\\ud", "\\uD")
_TYPES: Mapping[str, type] = {"string": str, "integer": int, "boolean": bool}


@dataclass(frozen=True, slots=True)
class PlainArgument:
    """One argument. `sent` is its name for callers, `kind` a JSON type or the name of a maker."""

    name: str
    sent: str
    kind: str
    required: bool = False
    default: Any = None
    nullable: bool = False
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] | None = None

    def takes(self, value: Any) -> bool:
        if value is None:
            return self.nullable
        if type(value) is not _TYPES.get(self.kind, str) or (self.choices is not None and value not in self.choices):
            return False
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


class PlainArguments:
    """Reads arguments as `otherwise()` would. `makers` turn a text into a value of a kind, or raise ToolError."""

    __slots__ = ("_arguments", "_makers", "_otherwise")

    def __init__(
        self,
        arguments: Sequence[PlainArgument],
        makers: Mapping[str, Callable[[str], Any]],
        otherwise: Callable[[], ReadsArguments],
    ) -> None:
        self._arguments = {argument.sent: argument for argument in arguments}
        self._makers = makers
        self._otherwise = otherwise

    def parse(self, raw: RawArguments, unlisted: frozenset[str] = frozenset()) -> Any:
        values = self._read(raw) if isinstance(raw, str) else None
        return (
            self._otherwise().parse(raw, unlisted) if values is None else PlainModel(values, lambda: self._again(raw))
        )

    def _again(self, raw: RawArguments) -> Any:
        return self._otherwise().parse(raw)

    def _read(self, text: str) -> dict[str, Any] | None:
        """The values by name; None for what is not right at first sight."""
        if any(part in text for part in _NOT_PLAIN):
            return None
        try:
            text.encode()
            pairs = json.loads(text, object_pairs_hook=_Pairs)
        except (ValueError, RecursionError):
            return None
        sent = dict(pairs) if isinstance(pairs, _Pairs) else None
        if sent is None or len(sent) != len(pairs) or not sent.keys() <= self._arguments.keys():
            return None
        try:
            return {argument.name: self._value(argument, sent) for argument in self._arguments.values()}
        except (_NotPlain, ToolError):
            return None

    def _value(self, argument: PlainArgument, sent: Mapping[str, Any]) -> Any:
        if argument.sent not in sent and not argument.required:
            return argument.default
        value = sent.get(argument.sent)
        if argument.sent not in sent or not argument.takes(value):
            raise _NotPlain
        maker = self._makers.get(argument.kind)
        return value if maker is None or value is None else maker(value)


class _NotPlain(Exception):
    """A value is not right at first sight."""


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object as they stand there, so that a name that stands there twice is seen."""


class PlainModel:
    """Arguments by name, as attributes. Whatever else a model can do is done by the one that `model` makes."""

    __slots__ = ("__dict__", "_model")

    def __init__(self, values: Mapping[str, Any], model: Callable[[], Any]) -> None:
        self._model = model
        self.__dict__.update(values)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        yield from self.__dict__.items()

    def model_copy(self, *, update: Mapping[str, Any]) -> PlainModel:
        return PlainModel({**self.__dict__, **update}, lambda: self._model().model_copy(update=update))

    def model_dump(self, **options: Any) -> dict[str, Any]:
        return self._model().model_dump(**options)

    def model_dump_json(self, **options: Any) -> str:
        return self._model().model_dump_json(**options)
