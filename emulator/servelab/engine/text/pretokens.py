"""How a text is cut before byte pairs are merged.

All classes are spelled out in ASCII, so that every regular expression engine cuts alike whatever
edition of Unicode it knows; each piece is at most 17 bytes long, which bounds the merging.
"""

import re

PATTERN = "|".join(
    (
        r"'(?:[dmst]|ll|re|ve)(?![A-Za-z])",  # what English puts after an apostrophe
        r" ?[A-Z]?[a-z]{1,15}",  # words, and each part of CamelCase
        r" ?[A-Z]{1,16}(?![a-z])",
        r" ?[0-9]{1,3}",
        r" ?[\x00-\x08\x0e-\x1f!-/:-@\[-`{-\x7f]{1,8}",  # other visible or control characters
        r" ?[^\x00-\x7f]",  # each character outside ASCII by itself
        r"[\t-\r ]{0,15}[\n\r]",  # white space up to the end of a line
        r"[\t-\r ]{1,16}(?![^\t-\r ])",  # white space but for a word's own space
        r"[\t-\r ]{1,16}",
    )
)

# Control tokens, wherever they stand in a text.
END_OF_TEXT, MESSAGE_START, MESSAGE_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIALS = (END_OF_TEXT, MESSAGE_START, MESSAGE_END)

pieces = re.compile(PATTERN).findall


def letter_by_byte() -> list[str]:
    """GPT-2's way to write any bytes as visible text: a character for each byte."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = (byte for byte in range(256) if byte not in visible)
    letters = {byte: chr(byte) for byte in visible}
    letters |= {byte: chr(0x100 + place) for place, byte in enumerate(hidden)}
    return [letters[byte] for byte in range(256)]
