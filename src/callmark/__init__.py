"""callmark reads, teaches and runs tool calls that language models write as plain text.

>>> import callmark
>>> callmark.parse('Let me look. [CALL: get_weather({"city": "Oslo"})]').calls[0].arguments
{'city': 'Oslo'}
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from callmark.dialects import Dialect, Form, dialects, load_dialect
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

__version__ = "0.1.0"

# Loaded when first asked for: reading alone needs no validators, threads or event loops.
_LATER = {
    "AuditLog": "callmark.running.observing",
    "Breaker": "callmark.running.breaker",
    "Bulkhead": "callmark.running.bulkhead",
    "Cancel": "callmark.running.signals",
    "Executor": "callmark.running.executor",
    "Failure": "callmark.tools.results",
    "Invocation": "callmark.tools.context",
    "Ledger": "callmark.running.ledger",
    "LoopGuard": "callmark.running.loop_guard",
    "Registry": "callmark.tools.registry",
    "Result": "callmark.tools.results",
    "Session": "callmark.running.session",
    "Settings": "callmark.running.session",
    "SqliteLedger": "callmark.running.ledger",
    "Tool": "callmark.tools.tool",
    "tool": "callmark.tools.tool",
}

if TYPE_CHECKING:
    from callmark.running.breaker import Breaker
    from callmark.running.bulkhead import Bulkhead
    from callmark.running.executor import Executor
    from callmark.running.ledger import Ledger, SqliteLedger
    from callmark.running.loop_guard import LoopGuard
    from callmark.running.observing import AuditLog
    from callmark.running.session import Session, Settings
    from callmark.running.signals import Cancel
    from callmark.tools.context import Invocation
    from callmark.tools.registry import Registry
    from callmark.tools.results import Failure, Result
    from callmark.tools.tool import Tool, tool

__all__ = [
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
    "Invocation",
    "Ledger",
    "Limits",
    "LoopGuard",
    "Malformed",
    "Markup",
    "NotPermittedError",
    "Notice",
    "Parsed",
    "Parser",
    "Registry",
    "Repair",
    "Result",
    "Session",
    "Settings",
    "SnapshotFeeder",
    "Span",
    "SqliteLedger",
    "Text",
    "Tool",
    "ToolError",
    "ToolsError",
    "UnknownDialectError",
    "UsageError",
    "detect",
    "dialects",
    "load_dialect",
    "parse",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'callmark' has no attribute {name!r}")
    value = getattr(import_module(_LATER[name]), name)
    globals()[name] = value
    return value
