"""Places in a template, suggestions, and diagnostics shown the way a compiler shows them."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable
from difflib import get_close_matches
from typing import Final

from orchestrator.errors import Diagnostic

Path = tuple[str | int, ...]

MACROS: Final = frozenset({"if", "Fn::If"})
# longer names are not compared: typing errors in them are unlikely, and the comparison is quadratic
MAX_NAME_LENGTH: Final = 64
BREAKS: Final = re.compile("\r\n|[\r\n\x85\u2028\u2029]")  # where YAML ends a line
MAX_EXCERPT_CHARACTERS: Final = 160  # characters of a source line shown


def path_text(path: Iterable[str | int], start: str = "") -> str:
    """Return ``resources.a.properties.b[0]``, continuing `start`."""
    text = start
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def path_in_message(path: Iterable[str | int], functions: Container[str], start: str = "") -> str:
    """Return a path with a colon after each function: ``outputs.o.value.list_join: [1].get_attr``.

    Heat formats paths of nested functions in this way. The branch of a macro is omitted.
    """
    calls, text, macro = "", start, False
    for part in path:
        if not (macro and isinstance(part, int)):
            text = path_text([part], text)
        macro = part in MACROS
        if isinstance(part, str) and part in functions:
            calls, text = f"{calls}: {text}" if calls else text, ""
    return ": ".join(part for part in (calls, text) if part)


class Hints:
    """Suggests the name that was meant, for a bounded amount of work per template."""

    def __init__(self, budget: int = 100_000) -> None:
        """`budget` is the maximum number of name comparisons."""
        self._budget = budget

    def near(self, name: str, names: Collection[str]) -> str:
        """Return ``did you mean "x"?``, "" if no other name is similar or the budget is used up."""
        if len(name) > MAX_NAME_LENGTH or len(names) > self._budget:
            return ""
        self._budget -= len(names)
        others = [n for n in names if abs(len(n) - len(name)) <= 3 and n != name]
        matches = get_close_matches(name, others, n=1, cutoff=0.7)
        return f'did you mean "{matches[0]}"?' if matches else ""


def render(diagnostics: Iterable[Diagnostic], text: str | bytes, file: str = "template") -> str:
    """Return the diagnostics in the format of a compiler, with the source line and a caret under the
    location.

    `text` is the source of the diagnostics, `file` its default name; a diagnostic without a line is shown
    with its path instead.
    """
    lines = source_lines(text)
    return "\n".join(_rendered(diagnostic, lines, file) for diagnostic in diagnostics) + "\n"


def source_lines(text: str | bytes) -> list[str]:
    """Return the lines as YAML counts them; bytes that are no text are shown as replacement characters."""
    if isinstance(text, bytes):
        wide = text.startswith((b"\xff\xfe", b"\xfe\xff"))
        text = text.decode("utf-16" if wide else "utf-8", "replace").removeprefix("\ufeff")
    return BREAKS.split(text)


def excerpt(lines: list[str], line: int | None, column: int | None = None) -> tuple[str, str]:
    """Return a source line and the indentation of a caret under its column; both are counted from 1.

    A wide line is reduced to the part around the column.
    """
    if line is None or not 0 < line <= len(lines):
        return "", ""
    source = lines[line - 1].rstrip()
    before = min(column or 1, len(source) + 1) - 1
    cut = (
        before - MAX_EXCERPT_CHARACTERS // 2
        if len(source) > MAX_EXCERPT_CHARACTERS and before > MAX_EXCERPT_CHARACTERS // 2
        else 0
    )
    shown = source[cut : cut + MAX_EXCERPT_CHARACTERS]
    return shown, "".join("\t" if char == "\t" else " " for char in shown[: before - cut])


def _rendered(diagnostic: Diagnostic, lines: list[str], file: str) -> str:
    file = diagnostic.file or file
    # A multi-line message quotes its source in indented lines; here the source is shown below.
    said = ", ".join(part for part in diagnostic.message.splitlines() if part and not part.startswith(" "))
    if diagnostic.line is None:
        place = f"{file}: {diagnostic.path}" if diagnostic.path else file
        shown = [f"{place}: {diagnostic.severity}: {said} [{diagnostic.code}]"]
        margin = "  "
    else:
        column = diagnostic.column or 1
        shown = [f"{file}:{diagnostic.line}:{column}: {diagnostic.severity}: {said} [{diagnostic.code}]"]
        number = str(diagnostic.line)
        margin = " " * (len(number) + 2)
        source, under = excerpt(lines, diagnostic.line, column)
        if source:
            shown += [f" {number} | {source}", f"{margin}| {under}^"]
    if diagnostic.hint:
        shown += [f"{margin}= hint: {diagnostic.hint}"]
    return "\n".join(shown)
