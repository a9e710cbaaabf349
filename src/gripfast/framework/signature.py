"""Inspects the function behind a tool: its arguments, its injected parameters, and every fault in it."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from dataclasses import field
from functools import partial
from types import new_class
from typing import Annotated, Any, TypeAlias, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, RootModel, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaError

from gripfast.framework.arguments import Arguments
from gripfast.framework.context import ToolContext
from gripfast.framework.depends import DependencyKey, Depends, depends_of, graph_faults, hides_depends
from gripfast.framework.docstring import Docstring
from gripfast.framework.hints import Hints, hints_of
from gripfast.framework.schema import input_schema, output_schema
from gripfast.records import dataclass

T = TypeVar("T")
ArgumentField: TypeAlias = tuple[Any, FieldInfo]
# The tool names and argument names that every provider accepts.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\Z")
_ARGUMENT = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
_CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False, protected_namespaces=())
# What pydantic raises for a type it can't describe, and what a type's own hooks raise on input they don't expect.
_NO_SCHEMA = (PydanticUserError, SchemaError, NameError, TypeError, ValueError, AttributeError, RuntimeError)


@dataclass(frozen=True, slots=True)
class ArgumentModel:
    """A tool's arguments as a pydantic model, and its schema."""

    model: type[BaseModel]
    schema: dict[str, Any]

    def reader(self) -> Arguments:
        return Arguments(self.model, self.schema)


@dataclass(slots=True)
class Signature:
    """What has been learned about a function so far."""

    arguments: ArgumentModel | None = None
    needs: dict[str, DependencyKey[Any]] = field(default_factory=dict[str, DependencyKey[Any]])
    context: str | None = None
    faults: list[str] = field(default_factory=list[str])

    def injects(self, parameter: inspect.Parameter, annotation: Any) -> bool:
        """Records the parameter if it is injected rather than sent by the model, and returns whether it is."""
        if annotation is ToolContext:
            self.context = parameter.name
        elif (key := depends_of(annotation)) is not None:
            self.needs[parameter.name] = key
        elif isinstance(parameter.default, Depends) or hides_depends(annotation):
            self.faults.append(f"`{parameter.name}`: write it as Annotated[<type>, Depends(...)]")
        else:
            return False
        return True


def read_tool(function: Callable[..., Any], name: str, docstring: Docstring) -> Signature:
    """The signature of a function whose parameters are the tool's arguments."""
    signature, hints = Signature(faults=_kind_faults(function)), hints_of(function)
    parameters = inspect.signature(function).parameters
    fields = {
        name: one
        for name, parameter in parameters.items()
        if (one := _read_parameter(signature, parameter, hints, docstring)) is not None
    }
    signature.arguments, fault = _attempt(partial(_argument_model, name, fields))
    if fault:
        signature.faults += _type_faults(fields)
    signature.faults += [
        f"the docstring describes `{entry}`, which is not a parameter"
        for entry in docstring.arguments
        if entry not in parameters
    ]
    signature.faults += graph_faults(signature.needs)
    return signature


def _kind_faults(function: Callable[..., Any]) -> list[str]:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return ["it is a generator; a tool must return one value"]
    return []


def _read_parameter(
    signature: Signature, parameter: inspect.Parameter, hints: Hints, docstring: Docstring
) -> ArgumentField | None:
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
        signature.faults.append(f"`{stars}{name}`: declare each parameter by name")
    elif parameter.kind is parameter.POSITIONAL_ONLY:
        signature.faults.append(f"`{name}` is positional-only; a tool's arguments are passed by name")
    elif name in hints.faults:
        signature.faults.append(f"`{name}`: its annotation can't be evaluated ({hints.faults[name]})")
    elif name not in hints.types:
        signature.faults.append(f"`{name}` has no type annotation")
    elif not signature.injects(parameter, hints.types[name]):
        return _read_argument(signature, parameter, hints.types[name], docstring.arguments.get(name))
    return None


def _read_argument(
    signature: Signature, parameter: inspect.Parameter, annotation: Any, description: str | None
) -> ArgumentField | None:
    info = _field(parameter.default)
    if description and not info.description and not _describes(annotation):
        annotation = Annotated[annotation, Field(description=description)]
    if fault := _name_fault(parameter.name, annotation, info):
        signature.faults.append(f"`{parameter.name}`: {fault}")
        return None
    return annotation, info


def _field(default: Any) -> FieldInfo:
    if isinstance(default, FieldInfo):
        return default
    return cast("FieldInfo", Field() if default is inspect.Parameter.empty else Field(default=default))


def _describes(annotation: Any) -> bool:
    return any(extra.description for extra in _infos(annotation))


def _infos(annotation: Any) -> list[FieldInfo]:
    extras = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return [extra for extra in extras if isinstance(extra, FieldInfo)]


def _name_fault(name: str, annotation: Any, info: FieldInfo) -> str | None:
    shown = next((one.alias for one in (info, *_infos(annotation)) if one.alias), name)
    if name.startswith("_") or name == "model_config":
        return 'this name is reserved; rename it, or add an alias: Annotated[..., Field(alias="...")]'
    if not _ARGUMENT.match(shown):
        return "providers accept only letters, digits, `_`, `.` and `-` in a name, at most 64 characters"
    return None


def _argument_model(name: str, fields: dict[str, ArgumentField]) -> ArgumentModel:
    with warnings.catch_warnings():  # an argument may be called `json` or `copy`: the model's methods aren't used
        warnings.filterwarnings("ignore", message="Field name .* shadows an attribute")
        model = create_model(name, __config__=_CLOSED, **cast("dict[str, Any]", fields))
        return ArgumentModel(model, input_schema(model))


def _type_faults(fields: dict[str, ArgumentField]) -> list[str]:
    each = [(name, _attempt(partial(_argument_model, name, {name: one}))[1]) for name, one in fields.items()]
    return [f"`{name}`: its type has {fault}" for name, fault in each if fault]


def _attempt(make: Callable[[], T]) -> tuple[T | None, str]:
    """The result of `make`, or the reason why there is no JSON Schema."""
    try:
        return make(), ""
    except _NO_SCHEMA as fault:
        return None, f"no JSON Schema ({str(fault).splitlines()[0]})"


def read_execute(execute: Callable[..., Any]) -> Signature:
    """The signature of `execute(input, ...)`: the input, then the context and injected parameters."""
    signature, types = Signature(faults=_kind_faults(execute)), hints_of(execute).types
    parameters = list(inspect.signature(execute).parameters.values())
    if not parameters or parameters[0].kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD):
        signature.faults.append("execute must take the input as its first parameter")
    for place, parameter in enumerate(parameters[1:]):
        if signature.injects(parameter, types.get(parameter.name)) or parameter.default is not parameter.empty:
            continue
        if place == 0 and parameter.name not in types and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            signature.context = parameter.name  # execute(input, ctx) without annotations
        else:
            signature.faults.append(
                f"execute's `{parameter.name}` is neither a ToolContext nor injected with Depends"
            )
    signature.faults += graph_faults(signature.needs)
    return signature


def name_faults(name: str, description: str) -> list[str]:
    faults: list[str] = []
    if not _NAME.match(name):
        faults.append(f"name {name!r} must be 1 to 64 letters, digits, `_` or `-`, and not start with a digit or `-`")
    if not description.strip():
        faults.append("no description; write a docstring that tells the model when to use it")
    return faults


def read_input(signature: Signature, model: Any) -> None:
    """Takes the arguments from a model. Unknown arguments are refused unless the model sets `extra` itself."""
    if not (inspect.isclass(model) and issubclass(model, BaseModel)) or issubclass(model, RootModel):
        signature.faults.append("input must be a pydantic model with fields")
        return
    signature.arguments, fault = _attempt(lambda: ArgumentModel(it := _closed(model), input_schema(it)))
    if fault:
        signature.faults.append(f"its input has {fault}")


def _closed(model: type[BaseModel]) -> type[BaseModel]:
    if "extra" in model.model_config:
        return model
    attributes = {"__module__": model.__module__, "__doc__": model.__doc__}
    return new_class(model.__name__, (model,), {"extra": "forbid"}, lambda namespace: namespace.update(attributes))


def definition_faults(arguments: ArgumentModel, parameters: dict[str, Any], subject: str | None) -> list[str]:
    """Checks that the subject and a hand-written `parameters=` schema name the tool's real arguments."""
    faults: list[str] = []
    if subject is not None and subject not in arguments.model.model_fields:
        faults.append(f"subject `{subject}` is not one of its arguments")
    if parameters:
        listed, real = set(parameters.get("properties", {})), set(arguments.schema["properties"])
        faults += [f"parameters= has `{name}`, which is not an argument" for name in sorted(listed - real)]
        faults += [f"argument `{name}` is missing in parameters=" for name in sorted(real - listed)]
    if parameters and parameters.get("type") != "object":
        faults.append('parameters= must have "type": "object"')
    return faults


def returned_schema(function: Callable[..., Any]) -> tuple[dict[str, Any] | None, list[str]]:
    """The schema of a function's return type, or the faults that prevent one."""
    hints = hints_of(function)
    if "return" not in hints.types:
        return None, [f"output_schema needs a return annotation{_because(hints.faults.get('return'))}"]
    schema, fault = _attempt(lambda: output_schema(hints.types["return"]))
    if schema is None:
        return None, [f"its return type has {fault}"]
    if schema.get("type") != "object":
        return None, ["output_schema needs a return type that is a JSON object: a model, dataclass or TypedDict"]
    return schema, []


def _because(fault: str | None) -> str:
    return f" that can be evaluated ({fault})" if fault else ""
