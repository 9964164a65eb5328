"""JSON-RPC over a pipe: one message a line on standard input, one a line on standard output, and nothing else there."""

from __future__ import annotations

import codecs
import threading
from typing import BinaryIO

from callmark.serving.bounds import DEFAULT_BOUNDS, Bounds
from callmark.serving.rpc import Connection, Log


def serve(source: BinaryIO, target: BinaryIO, *, bounds: Bounds = DEFAULT_BOUNDS, log: Log) -> None:
    """Answer what comes from `source` until it ends. Blank lines are passed over; a last line needs no line break.

    A mark of UTF-8 may stand before the first one. Each answer is flushed. A line that is too long is told and passed
    over, without ever being held. Raises OSError where `target` cannot be written.
    """
    lock = threading.Lock()

    def send(message: bytes) -> None:
        with lock:
            target.write(message + b"\n")
            target.flush()

    connection = Connection(send, bounds=bounds, log=log)
    most = bounds.message_bytes + 2  # with its line break
    mark = codecs.BOM_UTF8
    try:
        while line := source.readline(most):
            line, mark = line.removeprefix(mark), b""
            if len(line) == most and not line.endswith(b"\n"):
                while line and not line.endswith(b"\n"):
                    line = source.readline(65_536)
                connection.refuse("too-large", f"a message may have {bounds.message_bytes} bytes; this one had more")
            elif not line.isspace():
                connection.receive(line.strip())
    finally:
        connection.close()
