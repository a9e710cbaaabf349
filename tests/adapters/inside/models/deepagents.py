"""The model that plays the script of the page."""

import os

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage


class Played(GenericFakeChatModel):
    def bind_tools(self, tools, **_):
        return self


WRITES = [
    ("write_file", {"file_path": "new.txt", "content": "one\n"}),
    ("write_file", {"file_path": os.path.abspath("other.txt"), "content": "one\n"}),
]


def script():
    for turn in ([("read_file", {"file_path": "a.txt"})], WRITES):
        calls = [{"name": name, "args": arguments, "id": arguments["file_path"]} for name, arguments in turn]
        yield AIMessage("", tool_calls=calls)
    yield AIMessage("FINISHED")


model = Played(messages=script())
