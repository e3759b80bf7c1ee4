"""The answer to a responses request as one object, at any time of its making."""

from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.replying import Reply
from servelab.engine.surfaces.vllm import chunks, replies, scores, thinking, tools
from servelab.engine.text import dialects, encoding


class Document:
    """The answer as one object, at any time of its making."""

    def __init__(self, head: chunks.Head, fields: Mapping[str, Any]) -> None:
        self._fields = fields
        self.item_id = "msg_" + head.id.removeprefix("resp_")
        self.call_id = "fc_" + head.id.removeprefix("resp_")
        self.thought_id = "rs_" + head.id.removeprefix("resp_")
        self.head = head

    def response(self, reply: Reply | None) -> dict[str, Any]:
        """The whole; without a reply: in progress."""
        status = "in_progress" if reply is None else self.status(reply)
        details = {"reason": "max_output_tokens"} if status == "incomplete" else None
        return {
            "id": self.head.id,
            "created_at": self.head.created,
            "model": self.head.model,
            "incomplete_details": details,
            "output": [] if reply is None else self.output(reply),
            "status": status,
            "usage": None if reply is None else _usage(reply),
            **self._fields,
            **({} if reply is None else _told(reply)),
        }

    @staticmethod
    def status(reply: Reply) -> str:
        """How it ended."""
        return "incomplete" if reply.choices[0].reason == "length" else "completed"

    def output(self, reply: Reply) -> list[dict[str, Any]]:
        """What the answer is: thoughts, if any, and a message or a call."""
        choice, status = reply.choices[0], self.status(reply)
        thought, said = split(reply)
        made = tools.found(choice, said) if reply.call.calling else None
        if made is not None:
            found = [self.called(made, made.arguments, status)]
        else:
            found = [self.item(reply)] if said or not thought else []
        told = reply.call.thinks is not None and reply.call.thinks.told
        return [self.thought(thought, status), *found] if thought and told else found

    def thought(self, text: str | None, status: str | None) -> dict[str, Any]:
        """What was thought; None: it begins."""
        return {
            "id": self.thought_id,
            "summary": [],
            "type": "reasoning",
            "content": None if text is None else [{"text": text, "type": "reasoning_text"}],
            "encrypted_content": None,
            "status": status,
        }

    def called(self, made: dialects.Written, arguments: str, status: str) -> dict[str, Any]:
        """A call of a function, with what is there of its arguments."""
        return {
            "arguments": arguments,
            "call_id": tools.call_id(self.head, 0, made),
            "name": made.name,
            "type": "function_call",
            "id": self.call_id,
            "namespace": None,
            "status": status,
        }

    def item(self, reply: Reply | None) -> dict[str, Any]:
        """The message; without a reply: begun."""
        text = "" if reply is None else split(reply)[1]
        logprobs = None if reply is None else likely(reply)
        return {
            "id": self.item_id,
            "content": [part(text, logprobs)] if text else [],
            "role": "assistant",
            "status": "in_progress" if reply is None else self.status(reply),
            "type": "message",
            "phase": None,
        }


def split(reply: Reply) -> tuple[str, str]:
    """What was thought, and what was said."""
    choice = reply.choices[0]
    if reply.call.thinks is None:
        return "", choice.text
    thought, said = thinking.split(choice)
    return thought or "", said or ""


def part(text: str, logprobs: list[Any] | None) -> dict[str, Any]:
    """The content of a message."""
    return {"annotations": [], "text": text, "type": "output_text", "logprobs": logprobs}


def likely(reply: Reply) -> list[dict[str, Any]] | None:
    """The tokens of the whole answer with what else they might have been, if that is wanted."""
    choice, top = reply.choices[0], reply.call.logprobs
    if top is None:
        return None
    made = replies.made(reply.call, choice, 0, choice.sent + choice.pending)
    found: list[dict[str, Any]] = scores.chat(made, top)["content"]
    return found


def _told(reply: Reply) -> dict[str, Any]:
    """The prompt and the answer as text and tokens, if they are to be told."""
    choice = reply.choices[0]
    if not reply.call.prompt_text:
        return {}
    prompt, count = choice.prompt.encoded(), choice.sent + choice.pending
    return {
        "input_messages": [_raw(encoding.decode(prompt), prompt)],
        "output_messages": [_raw(choice.text, choice.answer.ids(0, count))],
    }


def _raw(text: str, tokens: Sequence[int]) -> dict[str, Any]:
    return {"message": text, "tokens": list(tokens), "type": "raw_message_tokens"}


def _usage(reply: Reply) -> dict[str, Any]:
    return {
        "input_tokens": reply.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": reply.cached_tokens,
            "cache_write_tokens": replies.created_tokens(reply),
            "input_tokens_per_turn": [],
            "cached_tokens_per_turn": [],
        },
        "output_tokens": reply.completion_tokens,
        "output_tokens_details": {
            "reasoning_tokens": thinking.tokens(reply),
            "tool_output_tokens": 0,
            "output_tokens_per_turn": [],
            "tool_output_tokens_per_turn": [],
        },
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
    }
