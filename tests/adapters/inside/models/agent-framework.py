"""The model that plays the script of the page."""

from agent_framework import BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message

CALLS = [("Read", {"file_path": "a.txt"}), ("Write", {"file_path": "new.txt", "content": "one\n"})]


class Played(FunctionInvocationLayer, BaseChatClient):
    turn = 0

    async def respond(self):
        self.turn += 1
        content = Content.from_text("FINISHED")
        if self.turn <= len(CALLS):
            name, arguments = CALLS[self.turn - 1]
            content = Content.from_function_call(call_id=f"c{self.turn}", name=name, arguments=arguments)
        return ChatResponse(messages=[Message(role="assistant", contents=[content])])

    def _inner_get_response(self, **_):
        return self.respond()


model = Played()
