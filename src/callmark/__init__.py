"""callmark reads, teaches and runs tool calls that language models write as plain text.

>>> import callmark
>>> callmark.parse('Let me look. [CALL: get_weather({"city": "Oslo"})]').calls[0].arguments
{'city': 'Oslo'}
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from callmark.dialects import Dialect, Form, Writing, dialects, load_dialect
from callmark.errors import (
    CallmarkError,
    DialectError,
    NotPermittedError,
    ToolError,
    ToolsError,
    UnknownDialectError,
    UsageError,
)
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

if TYPE_CHECKING:
    from callmark.conversion import convert, restore_history
    from callmark.dialects.rendering import WrittenCall
    from callmark.languages import Language, load_language
    from callmark.nonces import new_nonce
    from callmark.reading.feedback import feedback
    from callmark.running.breaker import Breaker
    from callmark.running.bulkhead import Bulkhead
    from callmark.running.executor import Executor
    from callmark.running.jobs import Approval
    from callmark.running.ledger import Ledger, LedgerError, SqliteLedger
    from callmark.running.loop_guard import LoopGuard
    from callmark.running.models import ModelError, OpenAIModel, Request
    from callmark.running.observing import AuditLog
    from callmark.running.session import Session, Step
    from callmark.running.settings import Settings
    from callmark.running.signals import Cancel
    from callmark.running.wording import Wording
    from callmark.tools.context import Invocation
    from callmark.tools.registry import Registry
    from callmark.tools.results import Failure, Result
    from callmark.tools.tool import Tool, tool
    from callmark.writing.calls import render_call, render_calls
    from callmark.writing.export import Grammar, export_grammar
    from callmark.writing.history import render_history
    from callmark.writing.messages import merge_into_messages
    from callmark.writing.neutral import neutralize
    from callmark.writing.prompt import Prompt, protocol_prompt
    from callmark.writing.results import render_result

__version__ = "0.1.0"

# Loaded when first asked for: who only reads does not wait for templates, validators, threads or event loops.
_LATER = {
    "convert": "callmark.conversion",
    "restore_history": "callmark.conversion",
    "new_nonce": "callmark.nonces",
    "feedback": "callmark.reading.feedback",
    "Breaker": "callmark.running.breaker",
    "Bulkhead": "callmark.running.bulkhead",
    "Executor": "callmark.running.executor",
    "Approval": "callmark.running.jobs",
    "Ledger": "callmark.running.ledger",
    "LedgerError": "callmark.running.ledger",
    "SqliteLedger": "callmark.running.ledger",
    "LoopGuard": "callmark.running.loop_guard",
    "ModelError": "callmark.running.models",
    "OpenAIModel": "callmark.running.models",
    "Request": "callmark.running.models",
    "AuditLog": "callmark.running.observing",
    "Session": "callmark.running.session",
    "Step": "callmark.running.session",
    "Settings": "callmark.running.settings",
    "Cancel": "callmark.running.signals",
    "Wording": "callmark.running.wording",
    "Invocation": "callmark.tools.context",
    "Registry": "callmark.tools.registry",
    "Failure": "callmark.tools.results",
    "Result": "callmark.tools.results",
    "Tool": "callmark.tools.tool",
    "tool": "callmark.tools.tool",
    "WrittenCall": "callmark.dialects.rendering",
    "render_call": "callmark.writing.calls",
    "render_calls": "callmark.writing.calls",
    "Grammar": "callmark.writing.export",
    "export_grammar": "callmark.writing.export",
    "render_history": "callmark.writing.history",
    "Language": "callmark.languages",
    "load_language": "callmark.languages",
    "merge_into_messages": "callmark.writing.messages",
    "neutralize": "callmark.writing.neutral",
    "Prompt": "callmark.writing.prompt",
    "protocol_prompt": "callmark.writing.prompt",
    "render_result": "callmark.writing.results",
}

__all__ = [
    "Approval",
    "ArgumentsDelta",
    "AuditLog",
    "Breaker",
    "Bulkhead",
    "Call",
    "CallStart",
    "CallmarkError",
    "Cancel",
    "Dialect",
    "DialectError",
    "Event",
    "Executor",
    "Failure",
    "Form",
    "Grammar",
    "Invocation",
    "Language",
    "Ledger",
    "LedgerError",
    "Limits",
    "LoopGuard",
    "Malformed",
    "Markup",
    "ModelError",
    "NotPermittedError",
    "Notice",
    "OpenAIModel",
    "Parsed",
    "Parser",
    "Prompt",
    "Registry",
    "Repair",
    "Request",
    "Result",
    "Session",
    "Settings",
    "SnapshotFeeder",
    "Span",
    "SqliteLedger",
    "Step",
    "Text",
    "Tool",
    "ToolError",
    "ToolsError",
    "UnknownDialectError",
    "UsageError",
    "Wording",
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
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'callmark' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LATER[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
