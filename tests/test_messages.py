"""The answer to a call, in the form each provider takes."""

from __future__ import annotations

import pytest

from gripfast import ImagePart, OutputRef, Session, TextPart, ToolMessage, provider_messages, tool
from gripfast.edges.mcp.results import result_of

PNG = ImagePart(b"\x89PNG", "image/png")
URL = "data:image/png;base64,iVBORw=="
TEXT = ToolMessage("c1", "Read", "hello")
SEEN = ToolMessage("c2", "Read", (TextPart("a picture"), PNG))
FAILED = ToolMessage("c3", "Read", "Error executing tool: NOT_FOUND: no", is_error=True)


def test_text_in_the_form_of_each_provider() -> None:
    assert TEXT.for_provider("openai") == {"role": "tool", "tool_call_id": "c1", "content": "hello"}
    assert TEXT.for_provider("openai-responses") == {
        "type": "function_call_output",
        "call_id": "c1",
        "output": "hello",
    }
    assert TEXT.for_provider("anthropic") == {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": "hello",
        "is_error": False,
    }
    assert TEXT.for_provider("gemini") == {
        "function_response": {"id": "c1", "name": "Read", "response": {"output": "hello"}}
    }
    assert TEXT.for_provider("mcp") == {"content": [{"type": "text", "text": "hello"}], "isError": False}


def test_an_image_is_an_image() -> None:
    assert SEEN.for_provider("anthropic")["content"] == [
        {"type": "text", "text": "a picture"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}},
    ]
    assert SEEN.for_provider("openai-responses")["output"][1] == {
        "type": "input_image",
        "image_url": URL,
        "detail": "auto",
    }
    parts = SEEN.for_provider("gemini")["function_response"]["parts"]
    assert parts == [{"inline_data": {"mime_type": "image/png", "data": b"\x89PNG"}}]
    assert SEEN.for_provider("mcp")["content"][1] == {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}


def test_the_mcp_form_is_what_the_server_sends() -> None:
    for message in (TEXT, SEEN, FAILED):
        sent = result_of(message, None).model_dump(by_alias=True, exclude_none=True, exclude={"result_type"})
        assert {key: sent[key] for key in ("content", "isError")} == message.for_provider("mcp")


def test_the_answers_of_one_turn_go_together() -> None:
    history = [{"role": "user", "content": "go"}, TEXT, SEEN, {"role": "assistant", "content": "fine"}, FAILED]
    openai = provider_messages(history, "openai")
    assert [message["role"] for message in openai] == ["user", "tool", "tool", "user", "assistant", "tool"]
    assert openai[3]["content"][1] == {"type": "image_url", "image_url": {"url": URL}}
    anthropic = provider_messages(history, "anthropic")
    assert [message["role"] for message in anthropic] == ["user", "user", "assistant", "user"]
    assert [block["tool_use_id"] for block in anthropic[1]["content"]] == ["c1", "c2"]
    assert anthropic[3]["content"][0]["is_error"] is True
    gemini = provider_messages(history, "gemini")
    assert [len(message.get("parts", [])) for message in gemini] == [0, 2, 0, 1]
    assert "error" in gemini[3]["parts"][0]["function_response"]["response"]


def test_a_form_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown form 'cohere'; use one of openai"):
        TEXT.for_provider("cohere")  # type: ignore[arg-type]


def test_the_value_of_an_answer_in_json() -> None:
    assert ToolMessage("c", "tree", '{"a":[1]}').value == {"a": [1]}
    with pytest.raises(ValueError, match="the answer of `Read` is not JSON: 'hello'"):
        _ = TEXT.value
    with pytest.raises(ValueError, match="was cut, see output_ref"):
        _ = ToolMessage("c", "tree", '{"a":', output_ref=OutputRef("r", 1, 1)).value


@tool
def long_text() -> str:
    """Prints more than a message holds."""
    return "a line\n" * 20_000


@pytest.mark.anyio
async def test_a_session_without_a_cache_of_its_own_stores_what_it_cuts() -> None:
    async with Session([long_text]) as session:
        message = await session.call("long_text")
        assert message.output_ref is not None
        window = await session.cache.window(message.output_ref.id, offset=-1)
        assert (window.total, window.lines[0].text) == (20_000, "a line")
