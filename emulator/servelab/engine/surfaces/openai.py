"""Parts of OpenAI's schemas that several engines take from its client as they are."""

from typing import Literal

# What a responses request may ask to have beside the answer.
Included = Literal[
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
]
