"""A model's thoughts: the tags around them, and what these open and close, said once for reading and for writing.

- The tags of a dialect are of one kind, and so are those of dialects that share one. Each of THOUGHT_TAGS is a kind.
- A tag closes a thought of its own kind: another model's is something to think about. Where none is open, one of
  THOUGHT_TAGS closes the innermost of these, as models confuse them, and each tag what the prompt has opened, of which
  nobody knows the tag.
- Thoughts are counted. With the outermost of a kind ends what was opened within.
- What opens a thought in code that stands in a thought is spoken of: it opens none, and as many that close it in code,
  behind it, close none.
- What begins an answer ends all thoughts of its kind. It is spoken of more than a tag that closes is, so that it ends
  none in code, and what the prompt has opened only where no other kind is listened for: that may be another model's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from callmark.dialects.model import Dialect

THOUGHT_TAGS: Final = (
    *(
        rf"<(?:(?P<closes>/)|(?P<opens>))(?i:{name})[ \t]{{0,4}}+>"
        for name in ("think", "thinking", "thought", "reasoning")
    ),
    r"\[(?:(?P<closes>/)|(?P<opens>))THINK\]",
)
"""What opens and closes a model's thoughts whatever the dialect, as patterns like those of `Dialect.tags`."""

TAG_GROUPS: Final = ("opens", "closes", "answers")
"""What a tag does with thoughts, as a group of its pattern."""

PROMPT: Final = ""
"""The kind of a thought that the prompt has opened."""

Thoughts: TypeAlias = dict[str, int]
"""How many are open of each kind, the outermost kind first."""


def is_thought_tag(text: str) -> bool:
    """Return whether a text is one of the tags that every dialect knows."""
    return any(re.fullmatch(tag, text) for tag in THOUGHT_TAGS)


def kinds_of_thoughts(dialects: Iterable[Dialect]) -> dict[str, str]:
    """Return the kind that each tag opens or ends where these dialects are listened for, by its pattern."""
    kinds: dict[str, str] = {}
    for row in (*((tag,) for tag in THOUGHT_TAGS), *((*dialect.tags, *dialect.leads) for dialect in dialects)):
        tags = [tag for tag in row if any(f"(?P<{way}>" in tag for way in TAG_GROUPS)]
        kinds.update(dict.fromkeys(tags, next((kinds[tag] for tag in tags if tag in kinds), tags[0] if tags else "")))
    return kinds


def open_thought(thoughts: Thoughts, kind: str) -> None:
    """A tag of that kind opens a thought."""
    thoughts[kind] = thoughts.get(kind, 0) + 1


def close_thought(thoughts: Thoughts, kind: str) -> None:
    """A tag of that kind closes a thought, if one is open that it can close."""
    if kind not in thoughts:
        alike = [other for other in thoughts if {kind, other} <= {*THOUGHT_TAGS}]
        kind = alike[-1] if alike else PROMPT
    if thoughts.get(kind, 0) > 1:
        thoughts[kind] -= 1
    else:
        end_thoughts(thoughts, kind)


def mention(mentioned: int, way: str | None) -> int:
    """A tag stands in code within a thought: return how many are mentioned there and not closed; -1 where it is none of
    them, and closes the thought, as code may never end in one.

    mentioned, way   how many were before it; what it does, one of TAG_GROUPS or nothing
    """
    return mentioned + {"opens": 1, "closes": -1}.get(way or "", 0)


def end_thoughts(thoughts: Thoughts, kind: str) -> None:
    """What begins an answer, or the last tag, ends all thoughts of that kind, if any are open."""
    if kind in thoughts:
        kinds = list(thoughts)
        for ended in kinds[kinds.index(kind) :]:
            del thoughts[ended]
