"""`Repetition`: what a model that goes on with a message says again of what it wrote before it was cut off.

It is asked to repeat nothing, and often does: the whole message, the whole call that was begun, or the last words.
Taken as they come, these would stand twice in a text that a tool gets, and calls of the message would run twice. What
is no clear repetition is kept: a tool that gets too little is no better off.
"""

from __future__ import annotations

from typing import Final

REACH: Final = 400
"""Characters before the cut from which a repetition may begin, where it is not the whole: more than feedback quotes."""
LEAST: Final = 8
"""Bytes that are no chance any more, with LETTERS among their characters: numbers of a list may well be the same."""
LETTERS: Final = 4
REFRAIN: Final = 3
"""Characters that may be repeated in two ways, as in a refrain: then nobody knows where it goes on."""


class Repetition:
    """Leaves out of what comes what repeats the end of `cut`, or all of it, or that and what stood `before` it.

    Work is linear, and what is held is at most as long.

    >>> repetition = Repetition('[CALL: note({"text": "Once upon a time')
    >>> [repetition.feed(piece) for piece in ("upon a", " time there", " was")], repetition.finish()
    (['', ' there', ' was'], '')
    """

    def __init__(self, cut: str, before: str = "") -> None:
        self._cut = cut
        self._wholes = [before + cut, cut]
        self._likely = self._wholes  # those that begin, as far as it goes, with what is held
        self._near = cut[-REACH:]
        self._over = not self._wholes[0]
        self._held: list[str] = []
        self._length = 0

    def feed(self, text: str) -> str:
        """Take the next piece and return what is new."""
        if self._over:
            return text
        self._held.append(text)
        self._likely = [whole for whole in self._likely if whole.startswith(text, self._length)]
        self._length += len(text)
        if self._likely or (self._length <= REACH and "".join(self._held) in self._near):
            return ""
        return self.finish()

    def finish(self) -> str:
        """Return what is held and no repetition: nothing more comes, or what comes decides it."""
        held = "".join(self._held)
        over, self._over = self._over, True
        if over:
            return ""
        again = next((len(whole) for whole in self._wholes if held.startswith(whole)), None)
        return held[self._repeated(held) if again is None else again :]

    def _repeated(self, held: str) -> int:
        """Return how many characters of `held` stand at the end of what was cut, and nowhere else in it."""
        lengths = range(REFRAIN, min(len(held), len(self._near)) + 1)
        found = [length for length in lengths if self._near.endswith(held[:length])]
        if len(found) != 1:
            return 0
        again = held[: found[0]]
        long = len(again.encode(errors="surrogatepass")) >= LEAST and sum(map(str.isalpha, again)) >= LETTERS
        return len(again) if long and self._cut.index(again) == len(self._cut) - len(again) else 0
