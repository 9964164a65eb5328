r"""Windows paths in strings of JSON or Python: `"C:\new\table\Users"`, whose author forgot to double the backslashes.

Read as escapes, `\n` and `\t` would become control characters, and only `\U` shows that no escape was meant. So a
string that begins like a path is looked at whole before anything of it is previewed.
"""

from __future__ import annotations

import re
from typing import Final

PATH_LIMIT: Final = 260
"""Characters up to which such a string is held: MAX_PATH of Windows."""

_PATH = re.compile(r"[A-Za-z]:\\|\\\\")
PATH_TEXT: Final = {
    quote: re.compile(rf"(?:[^{quote}\\\x00-\x1f\ud800-\udfff]|\\[^\x00-\x1f\ud800-\udfff]){{0,261}}+")
    for quote in "\"'"
}
"""By its quote, a string's text up to its end, or somewhat beyond the limit."""
_NETWORK = re.compile(r"\\\\[\w.$\-]{2,}\\[^\\]")
_PREFIX = re.compile(r"(?:[A-Za-z]:?|\\)?\Z")
_DRIVE = re.compile(r"[A-Za-z]:")
_TOKEN = re.compile(r"\\(.?)|\"", re.DOTALL)


def begins_path(beginning: str) -> bool:
    """Return whether a string that begins so may be a path: a drive, or two backslashes."""
    return _PATH.match(beginning) is not None


def may_begin_path(beginning: str) -> bool:
    """Return whether more text could make a path of a beginning of one or two characters."""
    return _PREFIX.match(beginning) is not None


def is_whole_path(text: str) -> bool:
    r"""Return whether a text that begins like a path is one: of a drive, or of a network, as `\\server\share`."""
    return _NETWORK.match(text) is not None or _DRIVE.match(text) is not None


def literal_path(piece: str, quote: str, *, whole: bool) -> tuple[str, list[int]]:
    r"""Return the content of a path as JSON, each backslash kept, and the places of those that were single.

    `\\` stays one backslash and an escaped quote a quote, but for the two that a network path begins with (`whole`:
    `piece` is the whole string). `quote` is that of the string: a `"` stands in one in single quotes, and only there
    an apostrophe is escaped.

    >>> literal_path(r"\new\Users", '"', whole=False)
    ('\\\\new\\\\Users', [0, 4])
    """
    places: list[int] = []

    def kept(token: re.Match[str]) -> str:
        at = token.start()
        if token[0] == '"':
            return '\\"'
        if token[1] == quote == "'":
            return "'"
        if whole and at == 0 and token[1] == "\\":
            places.extend((0, 1))
            return "\\\\\\\\"
        if token[1] in ("\\", '"'):
            return token[0]
        places.append(at)
        return "\\\\" + token[1]

    return _TOKEN.sub(kept, piece), places
