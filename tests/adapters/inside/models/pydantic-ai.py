"""The model that plays the script of the page."""

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

CALLS = [("Read", {"file_path": "a.txt"}), ("Write", {"file_path": "new.txt", "content": "one\n"})]


def play(messages, info):
    turn = sum(isinstance(message, ModelResponse) for message in messages)
    return ModelResponse(parts=[ToolCallPart(*CALLS[turn]) if turn < len(CALLS) else TextPart("FINISHED")])


model = FunctionModel(play)
