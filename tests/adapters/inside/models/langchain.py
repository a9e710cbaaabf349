"""The model that plays the script of the page."""

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage


class Played(GenericFakeChatModel):
    def bind_tools(self, tools, **_):
        return self


WRITES = [("Write", {"file_path": name, "content": "one\n"}) for name in ("new.txt", "other.txt")]


def script():
    for turn in ([("Read", {"file_path": "a.txt"})], WRITES):
        calls = [{"name": name, "args": arguments, "id": arguments["file_path"]} for name, arguments in turn]
        yield AIMessage("", tool_calls=calls)
    yield AIMessage("FINISHED")


model = Played(messages=script())
