"""The tools that the conformance suite needs, defined like any tool and served by our own HTTP edge.

usage: conformance_server.py PORT
"""

import base64
import sys
from typing import Annotated, Any

import anyio
from pydantic import BaseModel

from gripfast import Depends, DocumentPart, ImagePart, TextPart, ToolContext, ToolError, define_tool, tool
from gripfast.builtin.keys import PERSON
from gripfast.builtin.person import Person
from gripfast.edges.mcp.http import Access, serve_http
from gripfast.edges.mcp.sessions import FixedResource, Sessions
from gripfast.edges.settings import SessionSettings
from gripfast.host.program.net import listen, parse_address

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
Asked = Annotated[Person, Depends(PERSON)]


@tool
def test_simple_text() -> str:
    """Tests simple text content."""
    return "This is a simple text response for testing."


@tool
def test_image_content() -> ImagePart:
    """Tests image content."""
    return ImagePart(PIXEL, "image/png")


@tool
def test_embedded_resource() -> DocumentPart:
    """Tests embedded resource content."""
    return DocumentPart(b"This is an embedded resource content.", "text/plain", "embedded-resource")


@tool
def test_multiple_content_types() -> list[Any]:
    """Tests several kinds of content."""
    resource = DocumentPart(b'{"test":"data","value":123}', "application/json", "mixed-content-resource")
    return [TextPart("Multiple content types test:"), ImagePart(PIXEL, "image/png"), resource]


@tool
async def test_tool_with_logging(ctx: ToolContext) -> str:
    """Tests log messages during a call."""
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        ctx.logger.info(words)
        await anyio.sleep(0.05)
    return "logged"


@tool
async def test_tool_with_progress(ctx: ToolContext) -> str:
    """Tests progress during a call."""
    for done in (0, 50, 100):
        ctx.report_progress(done, 100)
        await anyio.sleep(0.05)
    return "progressed"


@tool
def test_error_handling() -> str:
    """Tests an error."""
    raise ToolError("INTERNAL", "This tool intentionally returns an error for testing")


async def _asked(person: Person, message: str, properties: dict[str, Any], required: list[str] | None = None) -> str:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    answer = await person.fill_in(message, schema | ({"required": required} if required else {}))
    return f"Elicitation completed: action={'decline' if answer is None else 'accept'}, content={answer}"


@tool
async def test_elicitation(message: str, person: Asked) -> str:
    """Tests a question to the person."""
    name = {"type": "string", "description": "User's response"}
    email = {"type": "string", "description": "User's email address"}
    return await _asked(person, message, {"username": name, "email": email}, ["username", "email"])


@tool
async def test_elicitation_sep1034_defaults(person: Asked) -> str:
    """Tests a question with defaults."""
    properties = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return await _asked(person, "Please review", properties)


@tool
async def test_elicitation_sep1330_enums(person: Asked) -> str:
    """Tests a question with choices of every kind."""
    plain = ["option1", "option2", "option3"]
    titled = [
        {"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)
    ]
    properties = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return await _asked(person, "Please choose", properties)


class Contact(BaseModel):
    name: str | None = None
    address: dict[str, Any] | None = None


def said(contact: Contact) -> str:
    return f"{contact.name}"


json_schema_2020_12_tool = define_tool(
    name="json_schema_2020_12_tool",
    description="Tool with JSON Schema 2020-12 features",
    input=Contact,
    execute=said,
    parameters={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}
        },
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "additionalProperties": False,
    },
)

TOOLS = (
    test_simple_text,
    test_image_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_tool_with_logging,
    test_tool_with_progress,
    test_error_handling,
    test_elicitation,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    json_schema_2020_12_tool,
)
STATIC = FixedResource("test://static-text", "static-text", "This is the content of the static text resource.")


def main() -> None:
    listening, address = listen(parse_address(f"127.0.0.1:{sys.argv[1]}"))
    sessions = Sessions(SessionSettings((".",), TOOLS), resources=[STATIC])
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    anyio.run(serve_http, sessions, Access(address, ()), listening)


if __name__ == "__main__":
    main()
