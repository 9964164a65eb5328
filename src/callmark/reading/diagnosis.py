"""Says in words what is wrong with a marker: what was expected, what was found, and where."""

from __future__ import annotations

from collections.abc import Iterable

from callmark.dialects import Dialect

GRAMMAR_LIMIT = 4096
"""Characters of a marker up to which the grammar is asked: it takes some 3 microseconds a token."""


def explain(
    dialect: Dialect, raw: str, at: int, code: str, expected: str, found: str, *, with_grammar: bool
) -> str:
    """Return the message for a broken marker `raw`, whose reader stopped at index `at`.

    Where the dialect's grammar stops at the same place, its expected set is used: it is complete.
    """
    if with_grammar and found and len(raw) <= GRAMMAR_LIMIT:
        from callmark.reading import grammar  # lark takes 90 ms to import

        mismatch = grammar.load(dialect).explain(raw)
        if mismatch is not None and mismatch.position == at:
            expected = " or ".join(mismatch.expected)
    if not found:
        return expected
    return f"expected {expected}, found {found}, {at} characters into the marker"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint at the known name that is most like `name`, "" for none."""
    import difflib  # only a wrong name needs it

    near = difflib.get_close_matches(name[:128], list(known)[:512], n=1)
    return f"; did it mean {near[0]!r}?" if near else ""
