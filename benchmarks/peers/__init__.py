"""What runs in the processes of the readers that are compared: one small protocol, and one module for each peer.

`worker.py` is the protocol. It and `stand_ins.py` use the standard library alone, and each of the other modules only
what its peer's own environment holds, so nobody's dependencies meet anybody else's.
"""
