"""Calls of functions as they stand in an answer's text, for who looks through it for them."""

import json

from servelab.engine.replying import Choice
from servelab.engine.text import writing

# What stands between a call and the mark of its end.
AFTER = writing.CALL_END.partition("<")[0]
ARGUMENTS, PARAMETERS = ', "arguments": ', ', "parameters": '
_NAME = '"name": '


def found(text: str) -> tuple[str, str] | None:
    """Name and arguments of the call in a whole text, if it is complete."""
    body = text.removeprefix(writing.CALL_START).partition(writing.CALL_END.strip())[0]
    try:
        made = json.loads(body)
        made = made[0] if isinstance(made, list) else made
        given = made["arguments"] if "arguments" in made else made["parameters"]
        return made["name"], json.dumps(given, ensure_ascii=False)
    except (ValueError, LookupError, TypeError):
        return None


class Deltas:
    """The call that one choice makes, told as its text comes."""

    def __init__(self, choice: Choice) -> None:
        text = choice.answer.text(choice.answer.tokens or 0)
        array = not text.startswith(writing.CALL_START)
        start = text.index(_NAME) + len(_NAME)
        self.name, length = json.JSONDecoder().raw_decode(text[start:])
        self._named_at = start + length
        self._start = self._named_at + len(PARAMETERS if array else ARGUMENTS)
        self._end = len(text) - len("}" + ("]" if array else writing.CALL_END))
        self._text = text
        self._place = 0
        self.begun = False
        self.arguments = ""  # what was told of them
        self.over = False

    def after(self, text: str) -> tuple[bool, str]:
        """Once this much more of the text is there: whether it begins, and more arguments."""
        before, self._place = self._place, self._place + len(text)
        begins = self._place >= self._named_at and not self.begun
        self.begun |= begins
        more = self._text[max(before, self._start) : min(self._place, self._end)]
        self.arguments += more
        self.over = self._place >= self._end
        return begins, more
