"""The model that plays the script of the page."""

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types

CALLS = [("Read", {"file_path": "a.txt"}), ("Write", {"file_path": "new.txt", "content": "one\n"})]


class Played(BaseLlm):
    turn: int = 0

    async def generate_content_async(self, llm_request, stream=False):
        self.turn += 1
        part = types.Part(text="FINISHED")
        if self.turn <= len(CALLS):
            name, arguments = CALLS[self.turn - 1]
            part = types.Part(function_call=types.FunctionCall(id=f"c{self.turn}", name=name, args=arguments))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


model = Played(model="scripted")
