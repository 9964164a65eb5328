"""callmark reads, teaches and runs tool calls that language models write as plain text.

>>> import callmark
>>> callmark.parse('Let me look. [CALL: get_weather({"city": "Oslo"})]').calls[0].arguments
{'city': 'Oslo'}
"""

from typing import TYPE_CHECKING

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
from callmark.reading.feedback import feedback
from callmark.reading.options import Limits
from callmark.reading.parser import Parser
from callmark.reading.whole import Parsed, SnapshotFeeder, detect, parse

if TYPE_CHECKING:
    from callmark.conversion import convert, restore_history
    from callmark.nonces import new_nonce
    from callmark.writing.calls import WrittenCall, render_call, render_calls
    from callmark.writing.export import Grammar, export_grammar
    from callmark.writing.history import render_history
    from callmark.writing.languages import Language, load_language
    from callmark.writing.messages import merge_into_messages
    from callmark.writing.neutral import neutralize
    from callmark.writing.prompt import Prompt, protocol_prompt
    from callmark.writing.results import render_result
else:
    # What writes is loaded when it is first asked for: who only reads does not wait for it.
    _LATER = {
        "convert": "callmark.conversion",
        "restore_history": "callmark.conversion",
        "new_nonce": "callmark.nonces",
        "WrittenCall": "callmark.writing.calls",
        "render_call": "callmark.writing.calls",
        "render_calls": "callmark.writing.calls",
        "Grammar": "callmark.writing.export",
        "export_grammar": "callmark.writing.export",
        "render_history": "callmark.writing.history",
        "Language": "callmark.writing.languages",
        "load_language": "callmark.writing.languages",
        "merge_into_messages": "callmark.writing.messages",
        "neutralize": "callmark.writing.neutral",
        "Prompt": "callmark.writing.prompt",
        "protocol_prompt": "callmark.writing.prompt",
        "render_result": "callmark.writing.results",
    }

    def __getattr__(name: str) -> object:
        """Load what writes."""
        from importlib import import_module

        if name not in _LATER:
            raise AttributeError(f"module 'callmark' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_LATER[name]), name)
        return value


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
    "Grammar",
    "Language",
    "Limits",
    "Malformed",
    "Markup",
    "Notice",
    "Parsed",
    "Parser",
    "Prompt",
    "Repair",
    "SnapshotFeeder",
    "Span",
    "Text",
    "ToolsError",
    "UnknownDialectError",
    "UsageError",
    "Writing",
    "WrittenCall",
    "convert",
    "detect",
    "dialects",
    "export_grammar",
    "feedback",
    "load_dialect",
    "load_language",
    "merge_into_messages",
    "neutralize",
    "new_nonce",
    "parse",
    "protocol_prompt",
    "render_call",
    "render_calls",
    "render_history",
    "render_result",
    "restore_history",
]
