"""Texts that a pattern of a row matches, made at random; Hypothesis makes none of what possessive patterns match.

What is looked ahead at is passed over: it stands in what follows, or the text is of no worth.
"""

from __future__ import annotations

import re
from random import Random
from re import _constants as sre
from typing import Any

from callmark.dialects import Dialect, Form
from callmark.dialects.derived import tolerated_end, tolerated_tail
from callmark.dialects.notation import expand
from callmark.dialects.parsed import one_character, tree

_CHARACTERS = "ab_z09-.=/|[]{}()'\"`<> \t\r\n中"
_MORE = (0, 0, 0, 1, 1, 2, 3, 6)  # times that something is repeated beyond what it must be
_VALUES = ("one", "1", "\n", "\r\n", "", "a b", "x</p>", '{"a": 1}', "y<z", "<", "&lt;", '"', "long " * 70)


def sample(pattern: str, random: Random) -> str:
    """Return a text that `pattern`, in the notation of rows, is likely to match, repeats no longer than needed."""
    return "".join(_pieces(tree(expand(pattern)), random))


def _pieces(items: Any, random: Random) -> list[str]:
    out = []
    for op, value in items:
        source = one_character(op, value)
        if source is not None:
            matching = re.findall(source, _CHARACTERS) if op is not sre.LITERAL else [chr(value)]
            out.append(random.choice(matching or [chr(_first(value))]))
        elif op is sre.BRANCH:
            out += _pieces(random.choice(value[1]), random)
        elif op is sre.SUBPATTERN:
            inside = _pieces(value[3], random)
            out += [random.choice([it.upper(), it]) for it in inside] if value[1] & re.IGNORECASE else inside
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            least, most, item = value
            for _ in range(min(most, least + random.choice(_MORE))):
                out += _pieces(item, random)
        elif op is sre.ATOMIC_GROUP:
            out += _pieces(value, random)
    return out


def _first(members: Any) -> int:
    """Return the first character of a set that has none of ours."""
    op, value = members[0]
    return int(value if op is sre.LITERAL else value[0])


class LooseTags:
    """Makes markers of a dialect of tags: their tags as tolerant reading takes them, and values that hold such."""

    def __init__(self, dialect: Dialect, seed: int) -> None:
        self._forms = [form for form in dialect.forms if form.body == "parameters"]
        self._random = Random(seed)

    def marker(self) -> str:
        random = self._random
        form = random.choice(self._forms)
        tags = self._tags(form)
        text = self._one(form.opener) + self._one(form.head)
        for _ in range(random.randrange(4)):
            text += self._one(random.choice([form.parameter, form.parameter, *form.loose_parameters]))
            text += random.choice(_VALUES)
            for _ in range(random.choice([0, 0, 0, 1, 2, 3])):
                text += self._one(random.choice(tags)) if random.random() < 0.6 else random.choice(_VALUES)
            text += self._one(form.value_end)
        return text + self._one(form.tail) + self._one(form.closer)

    def _one(self, pattern: str) -> str:
        return sample(pattern, self._random)

    def _tags(self, form: Form) -> list[str]:
        own = (form.parameter, form.value_end, form.tail, form.closer, form.opener, form.head, form.member, form.item)
        loose = (*form.loose_parameters, *form.loose_heads, tolerated_tail(form), tolerated_end(form))
        return [pattern for pattern in (*own, *loose, form.loose_value_end) if pattern]
