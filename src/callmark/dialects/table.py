"""The dialects that come with callmark, in the order in which they are tried at an opener they share.

Of the patterns that match at one place the first decides, which is how `<tool_call>` can belong to several rows: so the
place of a row counts where its markers begin as another one's do. Rows of plug-ins and of one's own come behind these.
The order is also that of `dialects()`, and so of every list that a user sees.

The rows themselves are in `rows`, whose page says which of its modules has what: each is a value with the name of the
dialect, directly below the constants that it alone needs.
"""

from __future__ import annotations

from msgspec.structs import replace

from callmark.dialects.model import Dialect, Form
from callmark.dialects.rows.attributes import INVOKE, MINICPM5, QWEN_XML
from callmark.dialects.rows.channels import BEAM, HARMONY
from callmark.dialects.rows.envelopes import FENCED, HERMES, LISTED, LLAMA, WRAPPED
from callmark.dialects.rows.expressions import CALL, CALL_WORD, FUNCTIONGEMMA, GEMMA4, PYTHONIC
from callmark.dialects.rows.objects import (
    APERTUS,
    DEEPSEEK,
    FUNCTIONARY,
    KIMI_K2,
    MISTRAL,
    QWEN_AGENT,
    REACT,
    SOLAR_OPEN,
    TOOL_USE,
)
from callmark.dialects.rows.signed import COHERE, DSML, KIMI_K3, MINIMAX_M3
from callmark.dialects.rows.tags import GLM, HUNYUAN, SOLAR_OPEN2, TOOLIFY

_ROWS: tuple[Dialect, ...] = (
    CALL,
    HERMES,
    QWEN_XML,
    GLM,
    HUNYUAN,
    MISTRAL,
    PYTHONIC,
    DEEPSEEK,
    KIMI_K2,
    DSML,
    INVOKE,
    MINIMAX_M3,
    MINICPM5,
    APERTUS,
    LISTED,
    COHERE,
    WRAPPED,
    KIMI_K3,
    HARMONY,
    BEAM,
    SOLAR_OPEN,
    SOLAR_OPEN2,
    LLAMA,
    GEMMA4,
    FUNCTIONGEMMA,
    TOOLIFY,
    TOOL_USE,
    FENCED,
    QWEN_AGENT,
    FUNCTIONARY,
    REACT,
)


def _beside_others(row: Dialect) -> Dialect:
    """Return the row, in which a marker of any dialect breaks a value that only quotes stand around."""
    return replace(row, forms=tuple(map(_quoted, row.forms)), variants=tuple(map(_quoted, row.variants)))


def _quoted(form: Form) -> Form:
    return replace(form, broken_by=_MARKERS) if form.value_end in ('"', "'") else form


_OTHERS = [form for row in _ROWS if row is not CALL for form in row.forms]
_STANDING = [form for form in _OTHERS if form.explicit and not (form.line_start or form.text_start)]
_BEGINS = [begin for form in _STANDING for begin in (form.opener, form.head if form.alone else "") if begin]
_MARKERS = (rf"\[{CALL_WORD}:{{ws}}{{name}}{{ws}}[(\]]", *dict.fromkeys(_BEGINS))
"""What begins a marker of a dialect that is listened for by default, wherever on a line; of `call` in any spelling."""

BUILTIN: tuple[Dialect, ...] = tuple(map(_beside_others, _ROWS))
