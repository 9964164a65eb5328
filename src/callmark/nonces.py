"""Makes nonces. It stands above the rooms of text, which are pure and get their nonce handed in: this is chance."""

from __future__ import annotations


def new_nonce() -> str:
    """Return a new code for calls to carry: 8 hexadecimal digits, which no text that was written before can hold.

    Hand it to `protocol_prompt` and to `parse`, and make a new one for each conversation. 32 bits are not for secrets
    that last: they keep content from guessing, and a model must copy them without an error.
    """
    from secrets import token_hex  # 10 ms, and few want a nonce

    return token_hex(4)
