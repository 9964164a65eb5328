"""Tells a model what was wrong with what it wrote: the words to send back, in its language.

The words are data (`callmark.languages`), the correct form is read back before it is shown (`corrections`), and where a
call was cut, what would close it is shown only where it does. Nothing here runs or repairs anything.

All of that is imported when there is a problem to speak of: it takes 7 ms, a tenth of what `import callmark` takes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from callmark.dialects import Dialect, select, selected
from callmark.dialects.notation import fill
from callmark.dialects.rendering import hidden
from callmark.errors import UnknownDialectError, UsageError
from callmark.events import RAW_KEY, JsonValue, Malformed, Notice
from callmark.reading.diagnosis import NO_DEFINITION, WANTED, message_parts, unknown_tool

if TYPE_CHECKING:
    from callmark.languages import Language
    from callmark.reading.begun import Begun

_FAR: Final = " … "  # between the marker and what stands behind it
EXCERPT: Final = 20
"""Characters of the model's text that are quoted on each side of an error: enough to find the place."""
TAIL: Final = 60
"""Characters of a cut call that are quoted, behind which the model goes on: a line."""
AGAIN: Final = 16_384
"""Characters of a marker of which arguments are shown in the correct form: a page that a model can take in."""

# The same again is no help.
_FINAL: Final = ("arguments-too-long", "too-many-calls", "extra-separator", "stray-closer", "snapshot-replaced")
_PLACED: Final = frozenset(
    (
        "unexpected-text", "bad-escape", "bad-number", "control-character", "lone-surrogate", "duplicate-key",
        "missing-name", "bad-arguments",
    )
)  # fmt: skip
_GAP: Final = re.compile(r"(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff])")  # Chinese words have no blank between them
_MORE: Final = re.compile(r"[^\W\d_]|[^\w\s\"')\]}<>]")  # with what text or code goes on behind a value: `+`, say
_UNSOUND: Final = (WANTED["inner-quotes"], WANTED["missing-closer"], NO_DEFINITION)
_OF_KEYS: Final = ('":"', '"="')  # what is expected behind a key
_PLACEHOLDER: Final = {"key": "value"}


def feedback(
    problem: Malformed | Notice,
    dialect: str | Dialect | None = None,
    language: str | Language = "en",
    *,
    nonce: str | None = None,
) -> str:
    """Return what to tell a model about a problem of its text: what was wrong, the correct form, what to do.

    >>> from callmark import parse
    >>> print(feedback(parse('[CALL: get_weather({"days": 2, "city" "Oslo"})]').problems[0]))
    Your call of `get_weather` could not be read, so it was not run.
    Something stands where it is not allowed. Expected ":", found `"`, where ⟦ ⟧ stand: ({"days": 2, "city" ⟦"⟧Oslo"})]
    The correct form, with the arguments that could be read:
    [CALL: get_weather({"days": 2})]
    Write the whole call again, exactly in this form.

    problem     one of `Parsed.problems`
    dialect     the one that the model shall write, default: that of the problem, or none for a Notice; a problem of a
                dialect of one's own wants that Dialect
    language    "en", "zh-Hans", "zh-Hant", or what `load_language` gives
    nonce       the one that the text was read with, default: that of the broken marker. The correct form has a place
                for it, and asterisks stand there and wherever the model's text is quoted with it: who learns what was
                told cannot call. The model was told the nonce by the prompt

    A cut call is told how to go on. Of a marker with more than 16,384 characters no arguments are shown in the form,
    which would be as long. A Malformed without text is a call that a server sent in fragments: no form is shown. Cost:
    a few milliseconds for a short marker, which is read some ten times more; tenths of a second for the first of a
    dialect. Raises UsageError for another language or problem, UnknownDialectError for a dialect that is not
    registered.
    """
    from callmark.languages import language_of

    words = language_of(language)
    phrases = words.feedback
    if isinstance(problem, Notice):
        return hidden("\n".join(_on_notice(problem, dialect, phrases, nonce)), nonce)
    if not isinstance(problem, Malformed):
        raise UsageError(f"problem: expected a Malformed or a Notice, found {type(problem).__name__}")
    if not problem.raw:
        return "\n".join([first_line(problem, phrases), phrases[problem.code], phrases["anew"]])
    written = _dialect_of(problem, dialect)
    wanted = written if dialect is None else selected(dialect)
    nonce = nonce or _carried(problem.raw, written)
    told = hidden("\n".join(_on_malformed(problem, written, wanted, words, nonce)), nonce)
    return told.encode("utf-8", "backslashreplace").decode()  # half a character could not be sent


def _dialect_of(problem: Malformed, dialect: str | Dialect | None) -> Dialect:
    """Return the dialect that the problem is of. Raises UnknownDialectError where only its name is known."""
    if isinstance(dialect, Dialect) and dialect.name == problem.dialect:
        return select(dialect)[0]
    if not problem.dialect:
        return selected(dialect or "call")
    try:
        return select(problem.dialect)[0]
    except UnknownDialectError:
        own = f"the Dialect {problem.dialect!r}, of which the problem is and which is not registered"
        raise UnknownDialectError(f"dialect: expected {own}, found {dialect!r:.80}") from None


def _shown(form: str, phrases: Mapping[str, str], nonce: str | None) -> list[str]:
    """Return a form, and what to put in the place of its nonce, if it has one."""
    return [form, fill(phrases["code"], {"code": hidden(nonce, nonce)})] if nonce and nonce in form else [form]


def _carried(raw: str, dialect: Dialect) -> str | None:
    """Return the nonce that a broken marker carries before its name, None where it has none."""
    before = dialect.writing.nonce.partition("{nonce}")[0] if dialect.writing else ""
    found = re.match(rf"[^({{]{{0,32}}?{re.escape(before)}([0-9A-Za-z_\-]{{1,64}}+)", raw) if before else None
    return found and found[1]


def _on_notice(
    notice: Notice, dialect: str | Dialect | None, phrases: Mapping[str, str], nonce: str | None
) -> list[str]:
    from callmark.reading.corrections import correct_form

    if notice.code == "unknown-tool":
        name, near = unknown_tool(notice.message)
        return [fill(phrases["nearest" if near else "no-tool"], {"name": name, "near": near})]
    if notice.code in _FINAL:
        return [phrases[notice.code]]
    form = "" if dialect is None else correct_form(selected(dialect), None, {}, nonce)
    shown = [phrases["title"], *_shown(form, phrases, nonce)] if form else []
    return [phrases["left"], phrases[notice.code], *shown, phrases["outside"]]


def _on_malformed(
    problem: Malformed,
    written: Dialect,
    wanted: Dialect,
    words: Language,
    nonce: str | None,
) -> list[str]:
    from callmark.reading.begun import Begun, begun
    from callmark.reading.corrections import correct_form
    from callmark.reading.decoder import has_longer

    phrases = words.feedback
    cut = problem.code == "unclosed-marker"
    short = len(problem.raw) <= AGAIN
    came = _sound(begun(_certain(problem), written, nonce), problem) if cut or short else Begun(None, {}, "")
    in_name = not came.arguments and not came.closers and not re.search(r"\w\Z", problem.name or "")
    if in_name and _may_be_open(problem.name, problem):
        problem = msgspec.structs.replace(problem, name=None)
    lines = [first_line(problem, phrases)]
    if cut:
        lines += [phrases["continue"], hidden(problem.raw, nonce)[-TAIL:]]
        closing = _closing(problem.raw, written, came, nonce)
        if closing:
            lines += [phrases["close"], closing]
    else:
        lines.append(phrases[problem.code])
        if problem.code in _PLACED:
            lines[-1] += _place(problem, words, nonce)
    if problem.code not in _FINAL:
        known = {key: value for key, value in came.arguments.items() if key != RAW_KEY and short}
        if problem.code == "bad-number":  # which of them it is depends on a limit that is not known here
            known = {key: value for key, value in known.items() if not has_longer(value, 0)}
        form = correct_form(wanted, problem.name, known or _PLACEHOLDER, nonce)
        title = "title" if form == correct_form(wanted, None, {}, nonce) else "form-known" if known else "form"
        lines += [phrases[title], *_shown(form, phrases, nonce), phrases["instead" if cut else "again"]]
    return lines


def _certain(problem: Malformed) -> str:
    """Return the marker, up to where strict reading misses the end of a value: lenient reading guesses where it is; or
    where a schema stands, of which nothing is an argument.
    """
    parts = message_parts(problem.message)
    unended = parts is not None and (parts.expected in _UNSOUND or parts.expected.startswith('"<'))
    return problem.raw[: parts.at] if parts is not None and unended else problem.raw


def _sound(came: Begun, problem: Malformed) -> Begun:
    """Leave out a last value that perhaps goes on: its quote or bracket may be data, or the first part of a sum."""
    if not came.arguments:
        return came
    *others, (_, value) = came.arguments.items()
    goes_on = _may_be_open(value, problem) or _has_more(problem)
    return came._replace(arguments=dict(others)) if goes_on else came


def _may_be_open(value: JsonValue, problem: Malformed) -> bool:
    """Whether a value is a string whose last quote has something wrong right behind it: another one may have begun."""
    parts = message_parts(problem.message)
    if parts is None or problem.code != "unexpected-text" or not isinstance(value, str):
        return False
    before = problem.raw[: parts.at]
    written = (value, json.dumps(value, ensure_ascii=False)[1:-1])
    ends = tuple(each.rstrip() for each in written)  # a name has lost its blanks
    return before.endswith(('"', "'")) and before[:-1].rstrip().endswith(ends)


def _has_more(problem: Malformed) -> bool:
    """Whether what is wrong is a word or a sign behind a value, or a key without one: it may be more of that value."""
    parts = message_parts(problem.message)
    if parts is None or problem.code != "unexpected-text" or parts.in_words:
        return False
    if parts.expected in _OF_KEYS:
        return parts.found in (",", "}", ")")
    behind = problem.raw[: parts.at].rstrip().endswith(('"', "'", "]", "}", ")"))
    return behind and _MORE.match(parts.found) is not None


def first_line(problem: Malformed, phrases: Mapping[str, str]) -> str:
    """Return what `feedback` says first of a call, in its phrases: that it was not run."""
    kind = "cut" if problem.code == "unclosed-marker" else "broken"
    return fill(phrases[kind if problem.name else f"{kind}-nameless"], {"name": problem.name or ""})


def _place(problem: Malformed, words: Language, nonce: str | None) -> str:
    """Return what was expected and found, and the text around the place, with the place marked."""
    parts = message_parts(problem.message)
    if parts is None:
        return ""
    at, size = parts.at, len(problem.raw)
    raw = hidden(problem.raw, nonce)
    if at >= size:  # in text that is not of the marker, of which only what was found is known
        if problem.span.end - problem.span.start > size:  # or in a part of it that was left out
            return ""
        raw += _FAR * (at > size + 1)
        at = len(raw)
        raw += "" if parts.in_words else parts.found
    end = at + (len(parts.found) if raw.startswith(parts.found, at) else 1)
    around = f"{raw[max(at - EXCERPT, 0) : at]}⟦{raw[at:end]}⟧{raw[end : end + EXCERPT]}"
    told = fill(words.feedback["expected"], {"expected": _translated(parts.expected, words.expected)})
    found = _translated(parts.found, words.expected) if parts.in_words else _as_code(parts.found)
    told = fill(_GAP.sub("", told), {"found": found, "excerpt": " ".join(around.split())})
    return words.feedback["between"] + told


def _as_code(text: str) -> str:
    return f'"{text}"' if "`" in text else f"`{text}`"


def _translated(text: str, words: Mapping[str, str]) -> str:
    if not words:
        return text
    phrases = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    pattern = rf"""'[^']*+'|"[^"]*+"|(?<!\w)(?:{phrases})(?!\w)"""  # what is in quotes stands for itself
    return re.sub(pattern, lambda found: words.get(found[0], found[0]), text)


def _closing(raw: str, dialect: Dialect, came: Begun, nonce: str | None) -> str:
    """Return what behind `raw` makes a call of it, "" where that is not known."""
    from callmark.reading.corrections import ending
    from callmark.reading.options import EVERYWHERE
    from callmark.reading.whole import parse

    end = ending(dialect)
    if end is None:
        return ""
    closing = came.closers + end
    calls = parse(raw + closing, dialects=dialect, contexts=EVERYWHERE, nonce=nonce).calls
    return closing if calls and not calls[0].repairs else ""
