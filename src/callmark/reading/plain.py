"""The plain values of an argument list: what JSON, and what Python writes alike, as patterns and as JSON text."""

from __future__ import annotations

import re
from codecs import escape_decode
from collections.abc import Container, Sequence
from typing import Final

from callmark.reading.decoder import encode
from callmark.reading.lookahead import KEY_PATTERN
from callmark.reading.strings import CURLY, PREFIX, to_double
from callmark.reading.words import PYTHON_LITERALS

# `[^"\\\x00-\x1f]` and `[^'\\\x00-\x1f]` as ranges, in which `re` is faster
_IN_DOUBLE: Final = r"[ !#-\[\]-\U0010ffff]*+"
_PLAIN: Final = r"[ -&(-\[\]-\U0010ffff]*+"
DOUBLE: Final = rf'"{_IN_DOUBLE}(?:\\.{_IN_DOUBLE}){{0,128}}+"'  # of more pieces: `decode_at` is faster
SINGLE: Final = rf"""'{_PLAIN}(?:\\[\\'"bfnrt]{_PLAIN})*+'"""
BARE_FIRST: Final = rf"""[^\s,()\[\]{{}}"'=<，（）{"".join(CURLY)}\ud800-\udfff]"""
BARE_REST: Final = r"""[^,()\[\]{}"<，（）\r\n\ud800-\udfff]"""
BARE_SIZE: Final = 4000
BARE: Final = f"(?!{PREFIX}'){BARE_FIRST}{BARE_REST}{{0,{BARE_SIZE}}}+"  # `<` may begin a special token

BETWEEN_PAIRS: Final = r"(?:[;；、]?[ \t]|[；、]|[ \t](?:[&|;；、]|and)[ \t])"
"""What stands between two pairs where a comma is missing: a blank, and perhaps a sign in the comma's place."""
_PAIR: Final = {
    sign: re.compile(rf"{BETWEEN_PAIRS}({KEY_PATTERN})[ \t]{{0,8}}+{signs}[ \t]{{0,8}}+[^ \t\r\n{sign},)\]}}，）]")
    for sign, signs in (("=", "="), (":", "[:：]"))
}


def pair_in_word(
    buffer: str, names: Sequence[str], key: str, at: int, end: int, given: Container[str] = (), sign: str = "="
) -> int:
    """Return the index at which a bare word is over, as another pair begins behind a blank or a sign that stands for a
    comma; -1 where none begins.

    The word is the value of `key`, and stands from index `at` to `end`. Pairs begin with one of the other `names`, and
    none of those that were `given` before; behind them stands `sign`, `=` or `:`.
    """
    pattern = _PAIR[sign]
    found = pattern.search(buffer, at, end + 1)
    while found is not None and (found[1] == key or found[1] in given or found[1] not in names):
        found = pattern.search(buffer, found.end(1), end + 1)
    return -1 if found is None else found.start()


def _container(string: str) -> str:
    """Return what three levels of brackets look like, in which nothing but `string` is quoted."""
    level = r"(?!)"
    for _ in range(3):
        level = rf"""[\[{{](?:[^"'\[\]{{}}()\\]++|{string}|{level})*+[\]}}]"""
    return level


CONTAINER: Final = _container(DOUBLE)
PYTHON_CONTAINER: Final = _container(f"{SINGLE}|{DOUBLE}")
_TOKEN: Final = rf"{SINGLE}|{DOUBLE}|\b(?:True|False|None)\b"


def from_python(source: str) -> str:
    """Return the JSON of a Python string or container; its escapes are those of JSON."""
    if source.startswith("'"):
        return f'"{to_double(source[1:-1])}"'
    if '"' not in source and "\\" not in source and not ("True" in source or "False" in source or "None" in source):
        return source.replace("'", '"')
    return re.sub(_TOKEN, _token, source)  # compiled when first needed


def long_string(source: str) -> tuple[str, str]:
    """Return the JSON and the value of a SINGLE, as `from_python` and a decoder do, but all of it in C.

    Raises UnicodeEncodeError where it holds half of a surrogate pair.
    """
    value = escape_decode(source[1:-1])[0].decode()  # bytes, whatever typeshed says
    return encode(value), value


def _token(token: re.Match[str]) -> str:
    text = token[0]
    return f'"{to_double(text[1:-1])}"' if text[0] == "'" else PYTHON_LITERALS.get(text, text)
