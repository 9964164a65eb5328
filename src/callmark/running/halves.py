"""`Halves`: characters that a server cuts in two between two chunks, as those do whose strings are UTF-16."""

from __future__ import annotations


class Halves:
    """Puts characters together that were cut into halves of a surrogate pair between two chunks.

    >>> halves = Halves()
    >>> [halves.whole("a\\ud83d"), halves.whole("\\ude00b"), halves.rest()]
    ['a', '😀b', '']
    """

    def __init__(self) -> None:
        self._held = ""

    def whole(self, chunk: str) -> str:
        """Return the text up to what may still be half of a character."""
        if self._held and chunk:
            pair = self._held + chunk[0]
            chunk = pair.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass") + chunk[1:]
            self._held = ""
        if "\ud800" <= chunk[-1:] < "\udc00":  # the first half of a surrogate pair
            chunk, self._held = chunk[:-1], chunk[-1]
        return chunk

    def rest(self) -> str:
        """Return the half that no other half followed."""
        held, self._held = self._held, ""
        return held
