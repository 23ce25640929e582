"""Count dialect words per 1,000 words of prose, by package and by document.

Prose is the text of comments and docstrings in Python, of comments in shell, YAML, TOML and Makefiles, and of
everything outside code in Markdown. The words and phrases stand for clauses that a noun would replace, or for
former names; the count is an indicator, not a target (`docs/internals/language.md`).

    python tools/prose_words.py                 # every package and document; exits with 1 above the limit
    python tools/prose_words.py --files api     # every file below a folder, worst first
    python tools/prose_words.py --lines FILE    # each hit of a file, with its line
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

# fmt: off
DIALECT = frozenset({
    "what", "who", "whoever", "whatever", "nobody", "somebody", "anybody", "told",
    "leftover", "leftovers", "rings", "rung", "stray", "strays", "disturbed", "dress", "dressed", "handover",
    "standing",
    "tells", "anew", "beside", "meanwhile", "others", "one", "ones",
})
# fmt: on
LIMIT_PER_THOUSAND = 5.0
MIN_WORDS = 100  # below this a single hit exceeds the limit: reported, not judged
ROOTS = ("orchestrator", "api", "tasks", "alembic", "packages", "tests", "qa", "tools")
DOCUMENTS = ("docs", "examples", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
# The relative clause in a shorter coat: the reader looks back for the noun.
PHRASE = re.compile(r"\b(?:that|those) of\b|\bof (?:its|their) own\b", re.IGNORECASE)
WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
STRING_OR_COMMENT = re.compile(
    r'''"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?P<comment>\#[^\n]*)''',
    re.DOTALL,
)
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")  # of statements
INLINE_CODE = re.compile(r"`[^`\n]*`|``[^`]*``")

Line = tuple[int, str]


def comments(source: str) -> Iterator[Line]:
    """The comments of a Python module, with their lines: ten times faster than `tokenize`."""
    line, position = 1, 0
    for match in STRING_OR_COMMENT.finditer(source):
        if match["comment"]:
            line += source.count("\n", position, match.start())
            position = match.start()
            yield line, match["comment"].lstrip("# ")


def documented(node: ast.AST) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """The module, and the classes and functions in it."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node
    for block in BLOCKS:
        for inner in getattr(node, block, ()):
            yield from documented(inner)


def python_prose(source: str) -> Iterator[Line]:
    """The comments and docstrings of a Python module, with their lines."""
    yield from comments(source)
    for node in documented(ast.parse(source)):
        first = node.body[0] if node.body else None
        if (
            isinstance(first, ast.Expr)
            and isinstance(first.value, ast.Constant)
            and isinstance(first.value.value, str)
        ):
            for offset, text in enumerate(first.value.value.splitlines()):
                yield first.lineno + offset, text


def markdown_prose(source: str) -> Iterator[Line]:
    """The text of a Markdown document outside its code blocks."""
    blanked = FENCE.sub(lambda match: "\n" * match.group().count("\n"), source)
    yield from enumerate(blanked.splitlines(), 1)


def prose_of(path: Path) -> list[Line]:
    """The prose of a file with inline code removed, by line number."""
    source = path.read_text()
    lines = python_prose(source) if path.suffix == ".py" else markdown_prose(source)
    return [(number, INLINE_CODE.sub(" ", text)) for number, text in lines]


def count(lines: Iterable[Line]) -> tuple[int, Counter[str]]:
    """The number of words, and how often each dialect word occurs."""
    words, hits = 0, Counter[str]()
    for _, text in lines:
        found = [word.lower() for word in WORD.findall(text)]
        words += len(found)
        hits.update(word for word in found if word in DIALECT)
        hits.update(phrase.lower() for phrase in PHRASE.findall(text))
    return words, hits


def files_below(paths: Iterable[Path]) -> Iterator[Path]:
    """Python and Markdown files at or below `paths`, without hidden folders."""
    for path in paths:
        if path.is_file():
            yield path
        else:
            for file in sorted(path.rglob("*")):
                hidden = any(part.startswith(".") or part == "__pycache__" for part in file.parts)
                if file.is_file() and file.suffix in {".py", ".md"} and not hidden:
                    yield file


def group_of(file: Path, root: Path) -> str:
    """The row of a file in the report: a package of two levels, or the document itself."""
    relative = file.relative_to(root)
    if file.suffix == ".md":
        return str(relative)
    return "/".join(relative.parts[: min(2, len(relative.parts) - 1)]) or str(relative)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", type=Path, help="files and folders; default: the whole project")
    parser.add_argument("--files", action="store_true", help="count each file, worst first")
    parser.add_argument("--lines", action="store_true", help="print each hit")
    options = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    paths = [path.resolve() for path in options.paths] or [root / name for name in (*ROOTS, *DOCUMENTS)]
    words: Counter[str] = Counter()
    hits: dict[str, Counter[str]] = defaultdict(Counter)
    for file in files_below(path for path in paths if path.exists()):
        lines = prose_of(file)
        if options.lines:
            for number, text in lines:
                if count([(number, text)])[1]:
                    sys.stdout.write(f"{file.relative_to(root)}:{number}: {text.strip()}\n")
        group = str(file.relative_to(root)) if options.files else group_of(file, root)
        found, dialect = count(lines)
        words[group] += found
        hits[group].update(dialect)
    rows = sorted(
        ((1000 * hits[group].total() / max(words[group], 1), group) for group in words), reverse=True
    )
    above = 0
    for rate, group in rows:
        judged = words[group] >= MIN_WORDS
        above += judged and rate > LIMIT_PER_THOUSAND
        mark = "*" if judged and rate > LIMIT_PER_THOUSAND else " "
        worst = ", ".join(f"{word} {number}" for word, number in hits[group].most_common(4))
        if not options.lines:
            sys.stdout.write(f"{mark} {rate:6.1f}  {words[group]:7d} words  {group}  ({worst})\n")
    total = sum(words.values())
    dialect_total = sum(counter.total() for counter in hits.values())
    sys.stdout.write(f"  {1000 * dialect_total / max(total, 1):6.1f}  {total:7d} words  in all\n")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
