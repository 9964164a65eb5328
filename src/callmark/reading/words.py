"""What a plain value means, that is one without quotes or structure: a bare word of `key=value`, or the text of an
XML-ish parameter. One written rule set decides that.

Without a schema: what is a JSON scalar (or Python's True, False, None in an argument list) is that value, exactly;
everything else is a string of itself (`007`, `1e400`, `NaN`, `Oslo`).

With a schema, the declared types decide, in this order:
1. `null` where null is allowed; the text of a parameter that is a JSON object or array, where such a one is allowed
   (no word holds brackets);
2. where `enum` or `const` lists what is allowed, the member that is written so: `1` is a number in `[1, "auto"]`;
3. where a string is allowed, the text as it is: nothing is lost, `"123"` stays a string (beside an integer too);
4. `true`, `false` and `null` in whatever case, and Python's words for them; then an integer (leading zeros and a plus
   sign are read), then a number as JSON, Python or JavaScript has it (`.5`, `+1.5`, `1_000`, `0x1F`), where it reads
   as one;
5. otherwise the value that it is without a schema: checking it is for others, and nothing is guessed.

In JSON, where no schema is asked, tolerant reading takes a word for what must have been meant (`loose_word`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from json.encoder import encode_basestring as quoted
from math import isfinite
from typing import Final

from callmark.dialects.notation import BLANKS
from callmark.reading.matching import Remembered
from callmark.toolshapes import DIGITS_LIMIT, Types

NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
PYTHON_LITERALS: Final = {"True": "true", "False": "false", "None": "null"}
_LITERALS: Final = {"true": "true", "false": "false", "null": "null", **PYTHON_LITERALS}
_LOOSE_NUMBER = re.compile(
    r"(?P<sign>[+-]?)(?:0[xX](?P<hex>[0-9a-fA-F]{1,64}+)"
    r"|(?P<whole>0|[1-9][0-9]{0,2}+(?:_[0-9]{3}){1,16}+|[1-9][0-9]*+)?"
    r"(?:\.(?P<fraction>[0-9]*+))?(?P<exponent>[eE][+-]?[0-9]++)?)"
)
_ANY_INTEGER = re.compile(r"([+-]?)([0-9]++)")
OPENING: Final = frozenset(["tool_calls"])
"""Words, in lower case, that in brackets open a marker."""
_NO_STRINGS: Final = OPENING | frozenset(
    ["true", "tru", "false", "fals", "null", "nul", "none", "nil", "undefined", "nan", "inf", "infinity"]
)
"""Words that are no strings, in lower case: values of other languages, and what a typing error makes of them."""
_OCTET: Final = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_PART: Final = "(?:0|[1-9][0-9]{0,3}+)"
_BARE_VALUE: Final = re.compile(  # `2d6` is a word, but not what may be meant as a number: `1e5x`, `0b12`, `10L`, `1O0`
    r"[^\W\d][\w\-]{0,127}+|(?!0[BOXbox])[0-9]{1,8}+[A-DF-HJKMNP-TV-Za-df-hjkmnp-tv-z][0-9A-Za-z]{1,31}+"
    r"|[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"  # a date
    rf"|(?:{_OCTET}\.){{3}}{_OCTET}"  # an address
    rf"|(?![0-9]{{1,3}}+(?:\.[0-9]{{3}}){{2,3}}\Z){_PART}(?:\.{_PART}){{2,3}}"  # a version; no `1.234.567`
)


def holdable(number: str) -> bool:
    """Return whether a JSON number has a value: finite, and at most 4,300 digits."""
    if "e" in number or "E" in number or "." in number:
        return isfinite(float(number))
    return len(number) <= DIGITS_LIMIT + number.startswith("-")


def loose_number(word: str) -> str:
    """Return the JSON text of a number that JSON does not know, but Python and JavaScript do; "" for anything else.

    >>> [loose_number(word) for word in (".5", "+1", "1.", "-0x1F", "1_000", "007", ".", "1_0")]
    ['0.5', '1', '1.0', '-31', '1000', '', '', '']
    """
    found = _LOOSE_NUMBER.fullmatch(word)
    if found is None:
        return ""
    sign = found["sign"].rstrip("+")
    if found["hex"]:
        return f"{sign}{int(found['hex'], 16)}"
    whole, fraction = found["whole"], found["fraction"]
    if not (whole or fraction):
        return ""
    point = "" if fraction is None else f".{fraction or 0}"
    number = f"{sign}{(whole or '0').replace('_', '')}{point}{found['exponent'] or ''}"
    return number if holdable(number) else ""


def _read_undeclared(word: str) -> str:
    literal = _LITERALS.get(word)
    if literal is not None:
        return literal
    return word if NUMBER.fullmatch(word) and holdable(word) else quoted(word)


_undeclared: Final = Remembered(_read_undeclared)


def scalar(word: str, declared: Types | None) -> str:
    """Return the JSON text of a plain word, typed by the declared JSON Schema types (None: no schema)."""
    if not declared:
        return _undeclared[word]
    stripped = word.strip()
    literal = _LITERALS.get(stripped) or _LITERALS.get(stripped.lower())
    if literal == "null" and "null" in declared:
        return literal
    if declared.members:
        member = declared.members.get(word) or declared.members.get(stripped)
        if member is not None:
            return member
    if "string" in declared:
        return quoted(word)
    if literal is not None:
        return literal
    if "integer" in declared or "number" in declared:
        plain = word.strip(BLANKS)
        whole = _ANY_INTEGER.fullmatch(plain)
        if whole and len(whole[2]) <= DIGITS_LIMIT:
            return whole[1].rstrip("+") + (whole[2].lstrip("0") or "0")
        number = loose_number(plain)
        if number and ("number" in declared or number.removeprefix("-").isdecimal()):
            return number
    return word if NUMBER.fullmatch(word) and holdable(word) else quoted(word)


def _is_bare_value(word: str) -> bool:
    """Return whether a word may be meant as a string: one word, and no value's name, or what can be no number."""
    return _BARE_VALUE.fullmatch(word) is not None and word.lower() not in _NO_STRINGS


@lru_cache(maxsize=1024)
def loose_word(word: str) -> tuple[str, str]:
    """Return the JSON text of a word where a value is due, "" for none, and the code of the repair, "" for none.

    >>> [loose_word(word) for word in ("7", "None", "+7", "sea", "nan")]
    [('7', ''), ('null', 'python-literal'), ('7', 'python-literal'), ('"sea"', 'bare-value'), ('', '')]
    """
    if word in ("true", "false", "null") or NUMBER.fullmatch(word):
        return (word if word[-1] == "l" or word[-1] == "e" or holdable(word) else ""), ""
    text = PYTHON_LITERALS.get(word) or loose_number(word)
    if text:
        return text, "python-literal"
    return (quoted(word), "bare-value") if _is_bare_value(word) else ("", "")


def meaning(word: str, *, python: bool, tolerant: bool) -> tuple[str, str]:
    """Return the JSON text of a word where a value is due, and the code of its repair or fault, "" for none.

    `python`: in a value of an argument list. What is a fault is shown as a string.
    """
    if NUMBER.fullmatch(word):
        return (word, "") if holdable(word) else (quoted(word), "bad-number")
    if word in ("true", "false", "null"):
        return word, ""
    if python and word in PYTHON_LITERALS:
        return PYTHON_LITERALS[word], ""
    text, code = loose_word(word) if tolerant else ("", "")
    if not text:
        return quoted(word), "unexpected-text"
    return text, code
