"""How much one client may have, and a server of all of them."""

from __future__ import annotations

import msgspec

from callmark.errors import UsageError


class Bounds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one client may have at once; each can be set.

    message_bytes       16 MiB: one message, one body. Sixteen of the longest arguments that are read by default
    stream_characters   16 Mi characters: all that is fed to one stream, or that a model writes in one message
    streams             1,000 open on one connection: one that is idle takes some kilobytes
    sessions            100 open on one connection
    batch               1,000 messages in a batch, so that a small one cannot ask for an answer without end
    """

    message_bytes: int = 16 * 1024 * 1024
    stream_characters: int = 16 * 1024 * 1024
    streams: int = 1_000
    sessions: int = 100
    batch: int = 1_000

    def __post_init__(self) -> None:
        if min(self.message_bytes, self.stream_characters, self.streams, self.sessions, self.batch) < 1:
            raise UsageError("Bounds: expected numbers of at least 1")


DEFAULT_BOUNDS = Bounds()
