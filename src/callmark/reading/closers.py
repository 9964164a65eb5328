"""Finds out which closers are missing, too many or of another shape where a marker's arguments end.

Where a reader stands behind a value and finds neither a comma nor the closer that is due, what follows is compared as a
whole with all that is due: the brackets that are open, innermost first, and then the marker's tail. Only where one
change gets that right, the change is the repair: the first closers are missing, one is too many, one has another shape,
or a comma stands before them. Any bracket may be full-width besides. So none is supplied or dropped where more members
may follow, but for the one before a bracket that ends the marker alone (`_ends_alone`), and none at the end of the
text: what decides must be there. `derived.tolerated_tail` says what may stand where nothing but the tail is due.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from callmark.dialects import Form, derived
from callmark.dialects.notation import anonymous, expand
from callmark.events import Repair, Span
from callmark.reading.lookahead import envelope_begun
from callmark.reading.matching import Pattern
from callmark.reading.patterns import Section

DEPTH: Final = 8
"""Open brackets up to which closers are repaired: with the blanks between them they fit into HOLD_LIMIT."""

_WS: Final = expand("{ws}")
_SPELLINGS: Final = {")": ")）", "]": "]］】", "}": "}｝"}
_WIDE: Final = re.compile("[）］】｝]")
_BRACKET_TAIL: Final = re.compile(r"(?:\{ws\})?\\([)\]}])")
_NO_MEMBERS: Final = rf"(?={_WS}[^\s,:=)\]}}，：＝）］】｝])"
_LINE: Final = 200
"""Characters of a line in which the closers may still come that make a bracket before them data."""
_TURN_ENDS: Final = (
    rf"(?={_WS}(?:<\|(?:im_end|im_start|endoftext|end_of_text|eot_id|eom_id|end|return|user)\|>|</s>"
    r"|<(?:end_of_turn|eos|start_function_response)>|<｜(?:end▁of▁sentence|tool▁outputs▁begin)｜>"
    r"|<\|END_OF_TURN_TOKEN\|>|<\|tool_response>))"
)
"""The end of a model's turn, as the token that says it, or begins results: hosts leave it in the text, and nothing of
the turn can follow it.
"""


class Ending(NamedTuple):
    """How a marker ends: the index behind it, what was changed for that, and whether another call stands in it.

    `tag` is the index of another tag that was taken for the one that is due, -1 for none.
    """

    stop: int
    repairs: tuple[Repair, ...]
    more: bool
    tag: int = -1


class Endings:
    """What may stand where the closers `due` (innermost first) and then the tail of a marker of `form` are due.

    `inside` says that brackets of the arguments are open, so that more members may stand behind another bracket;
    `final` that no more text comes; `complete` that an envelope holds its name and its arguments.
    """

    def __init__(
        self, form: Form, section: Section | None, due: str, inside: bool, final: bool, complete: bool
    ) -> None:
        """Make a pattern for each change, in the order in which they are asked."""
        tail = anonymous(form.tail)
        bracket = _BRACKET_TAIL.fullmatch(form.tail)
        if bracket is not None:
            due, tail = due + bracket[1], ""
        elif section is not None and (not tail or (section.separated and "(?=" in tail)):
            tail = f"(?={(section.mended_last if final else section.mended).text})"
        first = _BRACKET_TAIL.match(form.tail)  # of a tail that has more to it, as `}}`
        may_be_bracket = first is not None or re.match(tail, "]x") is not None
        self._final = final
        self._ways: list[tuple[str, int, Pattern]] = []  # code of the repair, how many closers are missing
        if tail or bracket is not None:
            only_tail = len(due) == (bracket is not None)
            end = "" if bracket is not None else first[1] if first is not None else "]"
            rests = [(missing, due[missing:]) for missing in range(1, len(due) + (bracket is None))]
            if may_be_bracket:  # what is read as it comes must not be the beginning of a marker with all its closers
                rests = [way for way in rests if not way[1] or not (due + end).startswith(way[1] + end)]
            known = [rest + end for _, rest in rests if may_be_bracket and not (inside and len(rest + end) == 1)]
            self._add("", due, tail)
            spellings = {closer: others for closer, others in _SPELLINGS.items() if inside or closer != due[-1:]}
            if bracket is not None and only_tail:
                spellings.pop("}", None)
                self._add("wrong-closer", "", tail, "}｝" if bracket[1] != "}" else ")）")
            elif due:
                self._add_other("wrong-closer", due[1:], tail, {**spellings, due[0]: ""}, end, known)
            self._add_other("extra-closer", due, tail, spellings, end, known)
            if not inside:
                self._add("extra-comma", due, tail, ",")
            for missing, rest in rests:
                if not (inside and may_be_bracket and len(rest + end) == 1):
                    self._add("missing-closer", rest, tail, missing=missing)
                elif bracket is not None:
                    self._add("missing-closer", rest, _NO_MEMBERS + _ends_alone(due, final), missing=missing)
            if inside and may_be_bracket and section is not None and section.between:
                self._add("missing-closer", "", f"(?={section.between})", missing=len(due))
            loose_tails = [derived.tolerated_tail(form), _TURN_ENDS] if only_tail else []
            if complete and due == "}":
                further = rf"(?P<more>{_WS},?{_WS})(?={envelope_begun(form)})" if "(?P<more>" in form.loose_tail else ""
                loose_tails = [derived.next_marker(form), further]
            for loose in filter(None, loose_tails):
                self._ways.append(("missing-closer", 1, Pattern(f"(?P<closers>){expand(loose)}")))

    def _add_other(
        self, code: str, due: str, tail: str, spellings: dict[str, str], end: str, known: list[str]
    ) -> None:
        """Add a change that reads another closer first, but none with which a marker of `known` may begin."""
        others = [
            other
            for closer, other in spellings.items()
            if not any((closer + due + end).startswith(way) for way in known)
        ]
        self._add(code, due, tail, "".join(others))

    def _add(self, code: str, due: str, tail: str, other: str = "", missing: int = 0) -> None:
        before = f"{_WS}(?P<other>[{re.escape(other)}])" if other else ""
        closers = "".join(f"{_WS}[{re.escape(_SPELLINGS[closer])}]" for closer in due)
        self._ways.append((code, missing, Pattern(f"{before}(?P<closers>{closers}){tail}")))

    def ending(self, buffer: str, at: int, base: int) -> Ending | None:
        """Return how the marker ends whose closers begin at index `at`; `base` is the position of the buffer.

        The first of the ways that fits is taken, and what may still become one is waited for: of `}}}`, which is the
        end where one closer is missing, `}}` is the end where two are.
        """
        for code, missing, pattern in self._ways:
            found = pattern.match(buffer, at)
            if found is None:
                if not self._final and pattern.may_match(buffer, at):
                    return None
                continue
            groups = found.groupdict()
            changed = [Repair("missing-closer", Span(base + at, base + at))] * missing
            for group, name in (("other", code), ("wrong", "wrong-closer")):
                if groups.get(group) is not None:
                    changed = [Repair(name, Span(base + found.start(group), base + found.end(group)))]
            changed += [
                Repair("full-width-punctuation", Span(base + wide.start(), base + wide.end()))
                for wide in _WIDE.finditer(buffer, *found.span("closers"))
            ]
            tag = found.start("wrong") if groups.get("wrong") is not None else -1
            return Ending(found.end(), tuple(changed), groups.get("more") is not None, tag)
        return None

    def may_end(self, buffer: str, at: int) -> bool:
        """Return whether more text could make an ending of what stands at index `at`."""
        return any(pattern.may_match(buffer, at) for _, _, pattern in self._ways)


def _ends_alone(due: str, final: bool) -> str:
    """Return the pattern of a look-ahead behind a bracket that ends a marker, although closers are missing before it.

    It is data instead where a word goes on behind it, or where the last two closers that are `due` stand on its line
    before anything else opens, as in `path=/tmp/a]b, force=false)]`. `final`: no more text comes.
    """
    closer, last = (re.escape(_SPELLINGS[char]) for char in due[-2:])
    stop = r"\r\n(\[（【［"  # the line ends, or something else opens
    end = r"|\Z" if final else ""
    other = rf"[{closer}][ \t]{{0,4}}+(?:[^ \t{last}]{end})"  # a closer, but of something else
    rest = rf"[^{stop}{closer}0-9A-Za-z_][^{stop}{closer}]{{0,{_LINE}}}+(?:[^{closer}]|{other}{end})"
    return f"(?=[{stop}]|{other}|{rest}{end})"


@lru_cache(maxsize=1024)
def endings(
    form: Form, section: Section | None, due: str, inside: bool, final: bool, complete: bool
) -> Endings:
    """Return the endings for a place; made once for each."""
    return Endings(form, section, due, inside, final, complete)
