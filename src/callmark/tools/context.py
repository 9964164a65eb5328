"""What a tool is told beside its arguments: who asks, for how long, what was said. No model can write it."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Protocol

from callmark.tools.foreign import attempt


class Signal(Protocol):
    """What says that an invocation was cancelled; a `threading.Event` is one."""

    def is_set(self) -> bool:
        """Return whether it was cancelled."""

    def wait(self, timeout: float | None = None) -> bool:
        """Block until it is cancelled, or for `timeout` seconds, and return whether it was."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Invocation:
    """The context of one invocation.

    request_id        the host's name for the request; "" where it has none
    idempotency_key   the same for every attempt at the same call: hand it on to services that take one
    deadline          when the invocation is given up, in seconds of `clock`; None: never
    clock             the monotonic clock that `deadline` is measured by; None where there is no deadline
    cancel            says that nobody waits any more; a tool that runs long should look at it
    messages          the conversation: mappings with `role` and `content` (text, or parts as multi-modal models take)
    caller            the host's own fields: a member's name and role, say
    progress          called with whatever the tool reports
    review            whether what writes is only simulated, which holds for all that a tool calls in turn. A thread
                      that a tool starts knows of it by the context that it is handed, and by nothing else

    >>> context = Invocation(messages=[{"role": "user", "content": [{"type": "text", "text": "Hi"}]}])
    >>> context.flat_messages()
    [{'role': 'user', 'content': 'Hi'}]
    """

    is_context: ClassVar[bool] = True  # says to `read_signature` that such a parameter is none of the arguments

    request_id: str = ""
    idempotency_key: str = ""
    deadline: float | None = None
    clock: Callable[[], float] | None = None
    cancel: Signal | None = None
    messages: Sequence[Mapping[str, Any]] = ()
    caller: Mapping[str, Any] = field(default_factory=dict)
    progress: Callable[[Any], None] | None = None
    review: bool = False

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the result any more."""
        return self.cancel is not None and self.cancel.is_set()

    def remaining_seconds(self) -> float | None:
        """Return how long there is until the deadline, at least 0.0; None where there is no deadline."""
        if self.deadline is None or self.clock is None:
            return None
        return max(0.0, self.deadline - self.clock())

    def report(self, update: Any) -> None:
        """Tell the host of progress, where it listens; what the host raises is not the tool's to hear."""
        if self.progress is not None:
            attempt(self.progress, update)

    def flat_messages(self) -> list[dict[str, str]]:
        """Return the messages with their content as text: parts that are no text are named in brackets."""
        return [
            {"role": str(message.get("role", "")), "content": flat_content(message.get("content"))}
            for message in self.messages
        ]

    def __repr__(self) -> str:
        return f"Invocation(request_id={self.request_id!r}, {len(self.messages)} messages)"


_review: Final[ContextVar[bool]] = ContextVar("callmark_review", default=False)


def in_review(context: Invocation) -> Invocation:
    """Return the context, under review where it says so or what runs here is: no tool leaves a review by itself."""
    return context if context.review or not _review.get() else replace(context, review=True)


@contextmanager
def reviewing(on: bool) -> Iterator[None]:
    """Put what runs within under review, where `on`: also tasks and threads of tools that begin there."""
    if not on:
        yield
        return
    token = _review.set(True)
    try:
        yield
    finally:
        _review.reset(token)


def apart(value: Any) -> Any:
    """Return messages of one's own: who changes their mappings and lists changes nobody else's."""
    if isinstance(value, Mapping):
        return {key: apart(member) for key, member in value.items()}
    return [apart(member) for member in value] if isinstance(value, list) else value


def flat_content(content: Any) -> str:
    """Return the content of a message as text: parts one below the other, what is no text as `[type]`."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = [content] if isinstance(content, Mapping) else content
    return "\n".join(_flat_part(part) for part in parts)


def _flat_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text")
    return text if isinstance(text, str) else f"[{part.get('type', 'part')}]"


def is_reserved(key: str) -> bool:
    """Return whether a key of arguments is the host's alone: `__*`, and `userId` however it is spelled.

    Compatibility forms, case, invisible characters, blanks, `_` and `-` make no difference.

    >>> [key for key in ("city", "__deadlineMs", "userId", "User-ID", "user_identity") if is_reserved(key)]
    ['__deadlineMs', 'userId', 'User-ID']
    """
    plain = unicodedata.normalize("NFKC", key)
    plain = "".join(char for char in plain if unicodedata.category(char) != "Cf" and not char.isspace())
    return plain.startswith("__") or plain.casefold().replace("_", "").replace("-", "") == "userid"
