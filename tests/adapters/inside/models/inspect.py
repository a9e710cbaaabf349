"""The model that plays the script of the page."""

import tiktoken
from inspect_ai.model import ModelOutput, get_model


class Words:
    def encode(self, text, **_):
        return text.split()


tiktoken.get_encoding = tiktoken.encoding_for_model = lambda _: Words()  # the real table is a download

model = get_model(
    "mockllm/model",
    custom_outputs=[
        ModelOutput.for_tool_call("mockllm", "bash", {"cmd": "cat a.txt"}),
        ModelOutput.from_content("mockllm", "one"),
    ],
)
