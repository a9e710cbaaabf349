"""The model that plays the script of the page."""

import json

from agents import Model, ModelResponse, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

CALLS = [("Read", {"file_path": "a.txt"}), ("Write", {"file_path": "new.txt", "content": "one\n"})]


class Played(Model):
    turn = 0

    async def get_response(self, *_, **__):
        self.turn += 1
        if self.turn > len(CALLS):
            text = ResponseOutputText(text="FINISHED", type="output_text", annotations=[])
            item = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        else:
            name, arguments = CALLS[self.turn - 1]
            item = ResponseFunctionToolCall(
                arguments=json.dumps(arguments), call_id=f"c{self.turn}", name=name, type="function_call"
            )
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *_, **__):
        raise NotImplementedError


model = Played()
