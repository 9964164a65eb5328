"""callmark reads, teaches and runs tool calls that language models write as plain text.

>>> import callmark
>>> callmark.parse('Let me look. [CALL: get_weather({"city": "Oslo"})]').calls[0].arguments
{'city': 'Oslo'}
"""

from callmark.dialects import Dialect, Form, Writing, dialects, load_dialect
from callmark.errors import CallmarkError, DialectError, ToolsError, UnknownDialectError, UsageError
from callmark.events import (
    ArgumentsDelta,
    Call,
    CallStart,
    Event,
    Malformed,
    Markup,
    Notice,
    Repair,
    Span,
    Text,
)
from callmark.reading.options import Limits
from callmark.reading.parser import Parser
from callmark.reading.whole import Parsed, SnapshotFeeder, detect, parse
from callmark.writing.calls import WrittenCall, render_call, render_calls
from callmark.writing.neutral import neutralize

__version__ = "0.1.0"

__all__ = [
    "ArgumentsDelta",
    "Call",
    "CallStart",
    "CallmarkError",
    "Dialect",
    "DialectError",
    "Event",
    "Form",
    "Limits",
    "Malformed",
    "Markup",
    "Notice",
    "Parsed",
    "Parser",
    "Repair",
    "SnapshotFeeder",
    "Span",
    "Text",
    "ToolsError",
    "UnknownDialectError",
    "UsageError",
    "Writing",
    "WrittenCall",
    "detect",
    "dialects",
    "load_dialect",
    "neutralize",
    "parse",
    "render_call",
    "render_calls",
]
