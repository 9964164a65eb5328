"""How long prompts are: every style in every dialect, for 1, 5 and 20 tools. `python -m benchmarks.prompts`

A prompt here is the system text: title, tools, the form of a call and rules, without example turns, which are the same
in all styles. A minified-schema prompt is the very same with each tool as a line of minified JSON (style `schema`).
Tokens are estimated as `protocol_prompt` estimates them; `--tokenizer tokenizer.json` counts with a model's own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from functools import cache
from typing import Any

from callmark import Dialect, dialects, protocol_prompt
from callmark.cli.writing import counter
from callmark.languages import LANGUAGES
from callmark.writing.prompt import estimate_tokens
from callmark.writing.signatures import STYLES, Style

NUMBERS = (1, 5, 20)
_CITY = {"type": "string", "description": "Name of the city, with its country where it could be mistaken"}
_DATE = {"type": "string", "format": "date", "description": "Day, as YYYY-MM-DD"}
_ID = {"type": "string", "description": "Identifier, as the search returned it"}
_LIMIT = {"type": "integer", "minimum": 1, "maximum": 50, "default": 10, "description": "How many entries at most"}
_TEXT = {"type": "string", "description": "The text, without markup"}
_LANGUAGE = {"type": "string", "enum": ["en", "fr", "de", "es", "zh"], "description": "Language of the result"}
_ROWS: tuple[tuple[str, str, dict[str, Any], int], ...] = (  # name, description, parameters, how many are required
    ("get_weather", "Current weather and a forecast for a city. Knows today and the next six days.",
     {"city": _CITY, "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 1, "description": "Days"},
      "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "description": "Unit of temperatures"}}, 1),
    ("search_web", "Searches the web and returns titles, addresses and extracts. Not for private data.",
     {"query": {"type": "string", "description": "Words to look for"}, "limit": _LIMIT, "since": _DATE}, 1),
    ("translate", "Translates a text and keeps its line breaks.", {"text": _TEXT, "to": _LANGUAGE}, 2),
    ("create_event", "Creates an event in the calendar of the user and returns its identifier.",
     {"title": _TEXT, "date": _DATE, "start": {"type": "string", "description": "Time of the beginning, as HH:MM"},
      "minutes": {"type": "integer", "minimum": 5, "maximum": 1440, "description": "Length in minutes"},
      "guests": {"type": "array", "items": {"type": "string"}, "description": "E-mail addresses of guests"}}, 3),
    ("send_email", "Sends an e-mail from the user's own account. Ask before sending.",
     {"to": {"type": "array", "items": {"type": "string"}, "description": "E-mail addresses"}, "subject": _TEXT,
      "body": _TEXT}, 3),
    ("list_events", "Lists the events of a day in the calendar of the user.", {"date": _DATE, "limit": _LIMIT}, 1),
    ("delete_event", "Deletes an event from the calendar. It cannot be brought back.", {"event": _ID}, 1),
    ("read_file", "Reads a text file of the workspace, or a part of it.",
     {"path": {"type": "string", "description": "Path from the root of the workspace"},
      "first_line": {"type": "integer", "minimum": 1, "description": "First line to read"}, "lines": _LIMIT}, 1),
    ("write_file", "Writes a text file of the workspace and replaces what was there.",
     {"path": {"type": "string", "description": "Path from the root of the workspace"}, "content": _TEXT}, 2),
    ("run_query", "Runs a read-only SQL query on the sales database and returns rows as JSON.",
     {"sql": {"type": "string", "description": "One SELECT statement"}, "limit": _LIMIT}, 1),
    ("convert_currency", "Converts an amount with the rate of the last working day.",
     {"amount": {"type": "number", "minimum": 0, "description": "Amount in the first currency"},
      "source": {"type": "string", "description": "ISO code of the first currency"},
      "target": {"type": "string", "description": "ISO code of the other currency"}}, 3),
    ("find_flights", "Finds direct flights of a day, with prices.",
     {"origin": _CITY, "destination": _CITY, "date": _DATE,
      "cabin": {"type": "string", "enum": ["economy", "business", "first"], "description": "Cabin"}}, 3),
    ("book_flight", "Books a flight that find_flights returned. Ask first.", {"flight": _ID, "name": _TEXT}, 2),
    ("find_hotels", "Finds hotels with free rooms.",
     {"city": _CITY, "arrival": _DATE, "departure": _DATE,
      "stars": {"type": "integer", "minimum": 1, "maximum": 5, "description": "Stars at least"}}, 3),
    ("get_stock_price", "Last price of a share and its change on the day.",
     {"symbol": {"type": "string", "description": "Symbol on the exchange"}}, 1),
    ("set_timer", "Starts a timer that rings on all devices of the user.",
     {"minutes": {"type": "number", "minimum": 0, "description": "Minutes until it rings"}, "label": _TEXT}, 1),
    ("play_music", "Plays music on a speaker of the house.",
     {"query": {"type": "string", "description": "Artist, album or mood"}, "speaker": _ID,
      "volume": {"type": "integer", "minimum": 0, "maximum": 100, "description": "Volume in percent"}}, 1),
    ("set_light", "Switches a light of the house or changes its brightness.",
     {"light": _ID, "on": {"type": "boolean", "description": "Whether it is to be on"},
      "brightness": {"type": "integer", "minimum": 0, "maximum": 100, "description": "Brightness in percent"}}, 2),
    ("add_note", "Adds a note to the user's notebook.",
     {"text": _TEXT, "tags": {"type": "array", "items": {"type": "string"}, "description": "Words to find it by"}}, 1),
    ("search_notes", "Finds notes in the user's notebook by words or tags.", {"query": _TEXT, "limit": _LIMIT}, 1),
)  # fmt: skip

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {"type": "object", "properties": parameters, "required": list(parameters)[:required]},
        },
    }
    for name, description, parameters, required in _ROWS
]


def table(count: Callable[[str], int] = estimate_tokens, names: Collection[str] = ()) -> str:
    """Return tokens of the system text, without example turns, as a Markdown table: 1 / 5 / 20 tools in each cell.

    names   of the dialects that are shown; without any, all are
    """
    rows = ["| dialect | " + " | ".join(STYLES) + " |", "|---|" + "---:|" * len(STYLES)]
    for dialect in (row for row in dialects() if not names or row.name in names):
        cells = (
            " / ".join(str(_tokens(number, dialect, style, "en", count)) for number in NUMBERS) for style in STYLES
        )
        rows.append(f"| `{dialect.name}` | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def beside(count: Callable[[str], int] = estimate_tokens) -> str:
    """Return in a sentence how many tokens more or less than in `call` a prompt takes in other dialects."""
    rows = {row.name: row for row in dialects()}
    more = {
        name: [
            _tokens(number, row, style, "en", count) - _tokens(number, rows["call"], style, "en", count)
            for number in NUMBERS
            for style in STYLES
        ]
        for name, row in rows.items()
        if name != "call"
    }
    least, most = min(more, key=lambda name: min(more[name])), max(more, key=lambda name: max(more[name]))
    return (
        f"In other dialects it takes {min(more[least]):+} (`{least}`) to {max(more[most]):+} (`{most}`) tokens beside "
        "`call`; the command above prints all."
    )


def shares(count: Callable[[str], int] = estimate_tokens) -> str:
    """Return what prompts take of minified-schema prompts, in `call` and in the worst dialect, as a Markdown table."""
    rows = ["| language | tools | `signature` | `compact` |", "|---|---:|---:|---:|"]
    for language in LANGUAGES[:2]:
        for number in NUMBERS:
            cells = []
            for style in ("signature", "compact"):
                found = {
                    row.name: _tokens(number, row, style, language, count)
                    / _tokens(number, row, "schema", language, count)
                    for row in dialects()
                }
                cells.append(f"{found['call']:.2f} (at most {max(found.values()):.2f})")
            rows.append(f"| {language} | {number} | {' | '.join(cells)} |")
    return "\n".join(rows)


@cache
def _tokens(number: int, dialect: Dialect, style: Style, language: str, count: Callable[[str], int]) -> int:
    tools = TOOLS[:number]
    return protocol_prompt(tools, dialect, style=style, language=language, examples="none", count=count).tokens


if __name__ == "__main__":
    options = argparse.ArgumentParser(prog="python -m benchmarks.prompts", description=__doc__)
    options.add_argument("--tokenizer", help="a tokenizer.json; without it tokens are estimated")
    given = options.parse_args()
    counted = estimate_tokens if given.tokenizer is None else counter(given.tokenizer)
    print(f"{table(counted)}\n\n{shares(counted)}")
