"""How many instructions this process has run: Linux counts them, where it is asked by `perf_event_open`.

`perf stat` reads the same counter, for whole processes only. There is none in many virtual machines and containers.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Callable

_CALL = {"x86_64": 298, "aarch64": 241}  # the number of perf_event_open
_SIZE = 128  # bytes of perf_event_attr that are filled
_HARDWARE, _INSTRUCTIONS = 0, 1
_OF_THE_PROGRAM = (1 << 5) | (1 << 6)  # not those of the kernel and the hypervisor
_FLAGS_AT = 40


def counting() -> Callable[[], int] | None:
    """Return what tells the instructions of this thread so far, None where the system does not count them."""
    number = _CALL.get(platform.machine())
    if platform.system() != "Linux" or number is None:
        return None
    attributes = ctypes.create_string_buffer(_SIZE)
    struct.pack_into("IIQ", attributes, 0, _HARDWARE, _SIZE, _INSTRUCTIONS)
    struct.pack_into("Q", attributes, _FLAGS_AT, _OF_THE_PROGRAM)
    counter = ctypes.CDLL(None, use_errno=True).syscall(number, attributes, 0, -1, -1, 0)
    if counter < 0:
        return None

    def count() -> int:
        return int.from_bytes(os.read(counter, 8), "little")

    return count if count() else None
