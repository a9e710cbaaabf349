"""The model that plays the script of the page."""

from smolagents import Model
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole

CALLS = [
    ("Read", {"file_path": "a.txt"}),
    ("Write", {"file_path": "new.txt", "content": "one\n"}),
    ("final_answer", {"answer": "FINISHED"}),
]


class Played(Model):
    turn = 0

    def generate(self, messages, **_):
        name, arguments = CALLS[self.turn]
        self.turn += 1
        function = ChatMessageToolCallFunction(name=name, arguments=arguments)
        call = ChatMessageToolCall(id=f"c{self.turn}", type="function", function=function)
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])


model = Played(model_id="scripted")
