"""The tokens of a prompt and of the answer that follows, for the prefix cache."""

from collections.abc import Callable, Sequence

from servelab.engine.text.answers import Answer


class Transcript:
    """Token ids by place; the prompt is encoded when the core first asks."""

    __slots__ = ("_answer", "_encode", "_prompt_ids")

    def __init__(self, encode: Callable[[], Sequence[int]], answer: Answer) -> None:
        """``encode`` gives the prompt's ids."""
        self._encode = encode
        self._answer = answer
        self._prompt_ids: Sequence[int] | None = None

    def ids(self, first: int, count: int) -> list[int]:
        """So many ids from place ``first`` on."""
        if self._prompt_ids is None:
            self._prompt_ids = self._encode()
        before = len(self._prompt_ids)
        if first >= before:
            return self._answer.ids(first - before, count)
        ids = list(self._prompt_ids[first : first + count])
        return ids + self._answer.ids(0, count - len(ids))
