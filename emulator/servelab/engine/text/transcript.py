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

    def ids(self, first: int, count: int) -> Sequence[int]:
        """So many ids from place ``first`` on."""
        prompt = self._prompt_ids
        if prompt is None:
            prompt = self._prompt_ids = self._encode()
        before = len(prompt)
        if first + count <= before:
            return prompt[first : first + count]
        if first >= before:
            return self._answer.ids(first - before, count)
        return [*prompt[first:], *self._answer.ids(0, first + count - before)]
