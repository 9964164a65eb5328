"""What stands before and behind the values of an argument list, by single characters: for the compiled engine.

Each `behind_` function stands for a pattern of `pairs`, and says of what. It returns the index behind what that would
match; WAITS where the text ends before that can be told, or UNKNOWN, where the pattern must be asked: only ASCII is
known, and what models write. `pairs.looked` chooses the function, and a test holds each to its pattern.
"""

from __future__ import annotations

from typing import Final

from callmark.dialects.notation import BLANKS_LIMIT
from callmark.reading.characters import behind, table
from callmark.reading.plain import BARE_FIRST, BARE_REST, BARE_SIZE

UNKNOWN: Final = -1
WAITS: Final = -2

_BLANK: Final = table(r"[ \t\r\n]")
_SIGN: Final = table(r"[$@\-]")
_LETTER: Final = table(r"[^\W\d]")
_IN_KEY: Final = table(r"[\w.\-]")
_WORD: Final = table(BARE_FIRST)
_IN_WORD: Final = table(BARE_REST)
_MINUS: Final = table("-")
_DIGIT: Final = table("[0-9]")
_BEHIND_SCALAR: Final = table(r"[ \t\r\n,\]}]")
_QUOTE: Final = table("[\"']")
_ITEM: Final = table("[\"'\\[{]")
_BEFORE_ITEM: Final = table("[\"'\\[{0-9]")
_PLAIN: Final = table(r"[^\x00-\x1f\"'\\]")


def behind_key(text: str, at: int) -> int:
    """Of a key and its equals sign."""
    size = len(text)
    at = behind(text, behind(text, at, _BLANK, BLANKS_LIMIT), _SIGN, 1)
    begun = behind(text, at, _LETTER, 1)
    if begun == at < size:
        return UNKNOWN
    at = behind(text, behind(text, begun, _IN_KEY, 127), _BLANK, BLANKS_LIMIT)
    if at == size:
        return WAITS
    return at + 1 if text[at] == "=" else UNKNOWN


def behind_value(text: str, at: int) -> int:
    """Of what stands behind a value: the end of the list, or the next key."""
    at = behind(text, at, _BLANK, BLANKS_LIMIT)
    if at == len(text):
        return WAITS
    if text[at] == ")":
        return at + 1
    return behind_key(text, at + 1) if text[at] == "," else UNKNOWN


def behind_word(text: str, at: int) -> int:
    """Of a bare word alone."""
    begun = behind(text, at, _WORD, 1)
    if begun == at or text.find("'", at, at + 3) >= 0:  # it may be the prefix of a string of Python
        return UNKNOWN
    return behind(text, begun, _IN_WORD, BARE_SIZE)


def behind_colon(text: str, at: int) -> int:
    """Of what stands behind the closing quote of a key in an object."""
    at = behind(text, at, _BLANK, BLANKS_LIMIT)
    if at == len(text):
        return WAITS
    return at + 1 if text[at] == ":" else UNKNOWN


def behind_scalar(text: str, at: int) -> int:
    """Of a number in a container."""
    size = len(text)
    at = behind(text, at, _MINUS, 1)
    end = behind(text, at, _DIGIT, 16)
    if end < size and (end == at or (text[at] == "0" and end > at + 1)):
        return UNKNOWN
    if end < size and text[end] == ".":
        at = end + 1
        end = behind(text, at, _DIGIT, 15)
        if end == at < size:
            return UNKNOWN
    if end == size:
        return WAITS
    return end if behind(text, end, _BEHIND_SCALAR, 1) > end else UNKNOWN


def behind_comma(text: str, at: int, *, in_list: bool) -> int:
    """Of what stands behind a comma in a container: white space, and a number."""
    at = behind(text, at, _BLANK, BLANKS_LIMIT)
    if at == len(text):
        return WAITS
    if behind(text, at, _ITEM if in_list else _QUOTE, 1) > at:
        return at
    return behind_scalar(text, at) if in_list else UNKNOWN


def behind_item(text: str, at: int, *, in_list: bool) -> int:
    """Of the closing quote of a string in a container, in front of which `at` stands: what follows is looked at."""
    end = behind(text, at, _BLANK, BLANKS_LIMIT)
    if end < len(text) and text[end] == ",":
        end = behind(text, end + 1, _BLANK, BLANKS_LIMIT)
        if end < len(text):
            return at if behind(text, end, _BEFORE_ITEM if in_list else _QUOTE, 1) > end else UNKNOWN
    if end == len(text):
        return WAITS
    return at if text[end] == ("]" if in_list else "}") else UNKNOWN


def behind_run(text: str, at: int) -> int:
    """Of what passes in a string, whatever its quotes are. It is always known; more may pass."""
    return behind(text, at, _PLAIN, 32)


def begins_plainly(text: str, at: int) -> bool:
    """Return whether the string that begins at index `at` begins with no quote and like no path, as its characters say.
    """
    return at + 2 < len(text) and text[at + 1] not in "\"'\\" and text[at + 2] != ":"
