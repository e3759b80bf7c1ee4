"""The tokenizer folder, made by ``python -m servelab.engine.text.training`` (``make tokenizer``).

A byte-level BPE is trained until each word of the list, at the start of a text and after a space,
is one token, and with them the pieces most frequent in this project's own prose and code, and some
common English words. ``pieces.txt`` holds those pieces as they were once counted: the tokenizer
does not change when a page does.
"""

import heapq
import importlib.resources
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from modelserve.api import generated
from servelab.engine.text import pretokens

Pair = tuple[int, int]

# Weights beside the counts of pieces, which are at least some tens.
COMMON_WEIGHT = 10
WORD_WEIGHT = 1
MAX_MODEL_TOKENS = 1_048_576  # no model's limit; the engine has its own


def weights() -> dict[bytes, int]:
    """The training text: pieces with their weights."""
    result: Counter[bytes] = Counter()
    for line in _read("pieces.txt").splitlines():
        count, _, piece = line.partition("\t")
        result[json.loads(piece).encode()] += int(count)
    for word in _read("common.txt").split():
        for form in (word, word.capitalize()):
            for piece in (*pretokens.pieces(form), *pretokens.pieces(f" {form}")):
                result[piece.encode()] += COMMON_WEIGHT
    for word in _read("words.txt").split():
        for piece in (word, f" {word}"):
            result[piece.encode()] += WORD_WEIGHT
    return dict(result)


def train(weights: Mapping[bytes, int]) -> list[Pair]:
    """Merges until each piece is one token: always of the most frequent pair.

    Of pairs as frequent, the one whose bytes come first.
    """
    state = _Training(weights)
    merges: list[Pair] = []
    while (pair := state.most_frequent()) is not None:
        merges.append(pair)
        state.merge(pair)
    return merges


class _Training:
    """The pieces as far as they are merged, with each pair's weight and places."""

    def __init__(self, weights: Mapping[bytes, int]) -> None:
        self._pieces = [list(piece) for piece in weights]
        self._weights = list(weights.values())
        self._bytes = [bytes([byte]) for byte in range(256)]
        self._count: Counter[Pair] = Counter()
        self._places: defaultdict[Pair, set[int]] = defaultdict(set)
        for place in range(len(self._pieces)):
            self._account(place, 1)
        self._heap = [self._ranked(pair) for pair in self._count]
        heapq.heapify(self._heap)

    def _ranked(self, pair: Pair) -> tuple[int, bytes, Pair]:
        return -self._count[pair], self._bytes[pair[0]] + self._bytes[pair[1]], pair

    def most_frequent(self) -> Pair | None:
        while self._heap:
            count, _, pair = heapq.heappop(self._heap)
            if count and self._count[pair] == -count:  # else it changed since, and stands anew
                return pair
        return None

    def merge(self, pair: Pair) -> None:
        merged = len(self._bytes)
        self._bytes.append(self._bytes[pair[0]] + self._bytes[pair[1]])
        changed: set[Pair] = set()
        for place in list(self._places[pair]):
            changed |= self._account(place, -1)
            self._pieces[place] = _replaced(self._pieces[place], pair, merged)
            changed |= self._account(place, 1)
        for each in changed:
            heapq.heappush(self._heap, self._ranked(each))

    def _account(self, place: int, sign: int) -> set[Pair]:
        """Add a piece's pairs to the counts, or take them off."""
        pairs = list(pairwise(self._pieces[place]))
        for pair in pairs:
            self._count[pair] += sign * self._weights[place]
            (self._places[pair].add if sign > 0 else self._places[pair].discard)(place)
        return set(pairs)


def _replaced(ids: Sequence[int], pair: Pair, merged: int) -> list[int]:
    """``ids`` with each ``pair``, from left to right, as one."""
    result: list[int] = []
    after_left = False
    for token in ids:
        if after_left and token == pair[1]:
            result[-1] = merged
            after_left = False
        else:
            result.append(token)
            after_left = token == pair[0]
    return result


def tokenizer(merges: Iterable[Pair]) -> dict[str, object]:
    """A Hugging Face ``tokenizer.json``."""
    letters = pretokens.letter_by_byte()
    names = list(letters)
    written = []
    for left, right in merges:
        written.append([names[left], names[right]])
        names.append(names[left] + names[right])
    specials = [_special(content, len(names) + i) for i, content in enumerate(pretokens.SPECIALS)]
    split = {"type": "Split", "pattern": {"Regex": pretokens.PATTERN}, "behavior": "Isolated"}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}
    level |= {"use_regex": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": specials,
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [split | {"invert": False}, level],
        },
        "post_processor": level,
        "decoder": level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {name: token for token, name in enumerate(names)},
            "merges": written,
        },
    }


def _special(content: str, token: int) -> dict[str, object]:
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": token, "content": content} | plain | {"special": True}


def settings() -> dict[str, object]:
    """A Hugging Face ``tokenizer_config.json``, which holds the chat template too."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": pretokens.MESSAGE_END,
        "pad_token": pretokens.END_OF_TEXT,
        "clean_up_tokenization_spaces": False,
        "model_max_length": MAX_MODEL_TOKENS,
        "chat_template": _read("tokenizer/chat_template.jinja"),
    }


def documents() -> dict[str, str]:
    """The generated files by name."""
    special = {"eos_token": pretokens.MESSAGE_END, "pad_token": pretokens.END_OF_TEXT}
    return {
        "tokenizer.json": json.dumps(tokenizer(train(weights())), indent=0) + "\n",
        "tokenizer_config.json": json.dumps(settings(), indent=2) + "\n",
        "special_tokens_map.json": json.dumps(special, indent=2) + "\n",
    }


def _read(name: str) -> str:
    return importlib.resources.files("servelab.engine.text").joinpath(name).read_text("utf-8")


if __name__ == "__main__":
    sys.exit(
        generated.main(
            "python -m servelab.engine.text.training", __doc__, documents(), "make tokenizer"
        )
    )
