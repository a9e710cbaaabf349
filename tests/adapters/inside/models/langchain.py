"""The model that plays the script of the page."""

import os

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage


class Played(GenericFakeChatModel):
    def bind_tools(self, tools, **_):
        return self


def script(read, write):
    calls = [(read, {"file_path": os.path.abspath("a.txt")}), write]
    for number, (name, arguments) in enumerate(calls):
        yield AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"c{number}"}])
    yield AIMessage("FINISHED")


model = Played(messages=script("Read", ("Write", {"file_path": "new.txt", "content": "one\n"})))
