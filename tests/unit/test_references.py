"""References between files resolve: documents, sections, rules, links, paths and tests.

Checked are Python modules (comments, docstrings, SQL comments: the whole text is searched) and Markdown
documents.

A citation is the path of a document and its places: `docs/internals/rest-api.md §5.1, §5.5`, `… rule 12`,
`… rules 1-5, 11`, `… invariant 9`, `… "Limits"`. A section sign on its own belongs to the last document that
the file cites before it, and in `docs/internals/` to its own document.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("orchestrator", "api", "tasks", "alembic", "packages")
PACKAGES = (*PRODUCT, "tests", "qa", "tools")
INTERNALS = ROOT / "docs" / "internals"
FOREIGN = re.compile(r"(?<![\w/.-])(?:spec/[\w-]+\.md|(?:PROTOCOL|DESIGN|STYLE|DEPENDENCIES)\.md)")

GAP = r"(?:[ \t]*(?:\n[ \t]*(?:#|--|\*)?[ \t]*)?)"  # a line may end inside a citation, also in a comment
SECTION = r"§[A-Z]?\d*(?:\.\d+)*(?:-\d+)?"
NUMBERS = rf"\d+(?:-\d+)?(?:(?:,{GAP}|{GAP}and{GAP})\d+(?:-\d+)?(?!\w))*"
PLACE = rf'(?:{SECTION}|(?:rules?|invariants?){GAP}{NUMBERS}|"[A-Z][^"\n]*")'
SEPARATOR = rf"(?:,?{GAP}(?:and{GAP})?)"
DOCUMENT = r"(?:(?:\.\./)*(?:[\w-]+/)*[\w-]+\.md)"
CITATION = re.compile(
    rf"(?<![\w/.-])(?:\[(?:[^\]\n]*)\]\()?(?P<document>{DOCUMENT})\)?"
    rf"(?P<places>(?:{SEPARATOR}{PLACE})*)|(?P<bare>{SECTION})"
)
LINK = re.compile(r"\[[^\]\n]*\]\((?P<target>[^)\s]+)\)")
TICKED = re.compile(r"`(?P<path>[\w.*{},-]+(?:/[\w.*{},-]+)*/?)(?:::(?P<test>\w+))?`")
MODULE = re.compile(r"(?<![\w/.*{-])(?P<path>(?:[\w-]+/)*[\w-]+\.py)\b(?!::)")
DECISION = re.compile(r"(?<![\w/])(?P<folder>(?:[\w-]+/)*)(?:adr/|ADR )(?P<number>\d{4})(?!\d|-)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Text:
    """A file, its text, and the line of a position in it."""

    path: Path
    text: str
    starts: list[int]

    def at(self, position: int) -> str:
        """The position as `file:line`."""
        return f"{self.path.relative_to(ROOT)}:{bisect_right(self.starts, position)}"

    @property
    def is_markdown(self) -> bool:
        """Whether the file is a Markdown document."""
        return self.path.suffix == ".md"

    @property
    def is_internal(self) -> bool:
        """Whether the file is an internal document."""
        return self.path.parent == INTERNALS


@dataclass(slots=True)
class Document:
    """The places of a document that can be cited."""

    headings: set[str] = field(default_factory=set)
    anchors: set[str] = field(default_factory=set)
    items: dict[str, set[str]] = field(
        default_factory=dict
    )  # section or heading -> numbers of its list items

    @property
    def numbers(self) -> set[str]:
        """The numbers of all list items, independent of their section."""
        return {number for item in self.items.values() for number in item}

    def has_section(self, place: str) -> bool:
        """Whether it has the section `11`, `4.3` or `A9`, or the item 3 of the section 11 as `11.3`."""
        section, _, item = place.rpartition(".")
        return place in self.items or (bool(section) and item in self.items.get(section, ()))


def read(path: Path) -> Text:
    """Read a file; fenced code of a document is blanked, its lines are kept."""
    text = path.read_text()
    if path.suffix == ".md":
        text = FENCE.sub(lambda match: "\n" * match.group().count("\n"), text)
    return Text(path, text, [0, *(match.end() for match in re.finditer("\n", text))])


@cache
def texts() -> tuple[Text, ...]:
    """All files whose references are checked."""
    modules = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    documents = [path for package in (*PRODUCT, "docs") for path in (ROOT / package).rglob("*.md")]
    names = sorted([*modules, *documents, *ROOT.glob("*.md")])
    return tuple(read(path) for path in names if path != Path(__file__))


@cache
def document(path: Path) -> Document:
    """Read the places of a document."""
    result = Document()
    current = ""
    for line in read(path).text.splitlines():
        heading = re.match(r"#+ +(?:(?P<section>\d+(?:\.\d+)*|[A-Z]\d+|[A-Z](?=\.))\.? +)?(?P<text>.*)", line)
        item = re.match(r"(?P<number>\d+)\. ", line)
        if heading:
            title = heading["text"].strip()
            result.headings.add(title)
            result.anchors.add(slug(line.lstrip("#").strip()))
            current = heading["section"] or title
            result.items.setdefault(current, set())
        elif item:
            result.items.setdefault(current, set()).add(item["number"])
    return result


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


@cache
def names() -> frozenset[str]:
    """The file names of all modules of the product and of the tests."""
    return frozenset(text.path.name for text in texts() if not text.is_markdown)


def resolve(text: Text, path: str) -> Path | None:
    """Return the file or folder that a path in a text means, None when there is none.

    Paths begin at the repository's root, at a package, at the file's folder or at a parent folder.
    """
    packages = (
        ROOT / "orchestrator",
        ROOT / "docs",
        ROOT / "docs" / "internals",
        ROOT / "tests",
        ROOT / "qa",
    )
    above = [folder for folder in text.path.parents if folder.is_relative_to(ROOT)]
    for folder in (*above, *packages):
        if "*" in path or "{" in path:
            if any(folder.glob(re.sub(r"\{[^}]*\}", "*", path).rstrip("/"))):
                return folder
        elif (folder / path).exists():
            return folder / path
    return None


def expand(numbers: str) -> list[str]:
    """The numbers of `1-5, 11`; only the ends of a range are needed."""
    return re.findall(r"\d+", numbers)


def faults_of_places(cited: Document, places: str) -> Iterator[str]:
    """Yield the places that a document does not have."""
    section = ""
    for place in re.findall(PLACE, places):
        if place.startswith("§"):
            section, _, end = place[1:].partition("-")
            last = section.rpartition(".")[0] + "." + end if end else section
            yield from (f"no section §{name}" for name in {section, last} if not cited.has_section(name))
        elif place.startswith('"'):
            if place.strip('"') not in cited.headings:
                yield f"no heading {place}"
        else:
            recorded = (
                cited.items.get("Invariants", set()) if place.startswith("invariant") else cited.numbers
            )
            recorded = cited.items.get(section, set()) if section else recorded
            yield from (
                f"no {place.split()[0]} {number}" for number in expand(place) if number not in recorded
            )


def faults_of_citations(text: Text) -> Iterator[tuple[int, str]]:
    """Yield the citations of documents, sections and rules that do not resolve."""
    last = document(text.path) if text.is_internal else None
    for match in CITATION.finditer(text.text):
        if match["bare"]:
            if last is None:
                yield match.start(), f"{match['bare']}: no document is cited before it"
            else:
                yield from (
                    (match.start(), f"{match['bare']}: {fault}")
                    for fault in faults_of_places(last, match["bare"])
                )
            continue
        places = match["places"]
        if not places and "/" not in match["document"] and not text.is_markdown:
            continue  # the name of a file that is made
        if text.path.parts[len(ROOT.parts)] in ("tests", "qa") and not match["document"].startswith(
            "docs/internals/"
        ):
            continue  # made by a test
        cited = resolve(text, match["document"])
        if cited is None:
            yield match.start(), f"{match['document']}: no such document"
            continue
        if not text.is_internal and cited.parent == INTERNALS:
            last = document(cited)
        yield from (
            (match.start(), f"{' '.join(match.group().split())}: {fault}")
            for fault in faults_of_places(document(cited), places)
        )


def faults_of_links(text: Text) -> Iterator[tuple[int, str]]:
    """Yield the Markdown links whose file or anchor is missing."""
    for match in LINK.finditer(text.text) if text.is_markdown else ():
        target, _, anchor = match["target"].partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        path = (text.path.parent / target).resolve() if target else text.path
        if not path.exists():
            yield match.start(), f"{match['target']}: no such file"
        elif anchor and path.suffix == ".md" and anchor not in document(path).anchors:
            yield match.start(), f"{match['target']}: no such heading"


def faults_of_paths(text: Text) -> Iterator[tuple[int, str]]:
    """Yield the paths of the repository that do not exist: in backticks, or of modules in the product."""
    tops = {*PACKAGES, "docs", "examples"}
    for match in TICKED.finditer(text.text):
        path = match["path"]
        is_test = match["test"] is not None and path.endswith(".py")
        is_path = "/" in path.rstrip("/") and path.split("/")[0] in tops
        is_module = path.endswith(".py") and (is_test or "/" not in path) and text.is_markdown
        if is_path and resolve(text, path) is None:
            yield match.start(), f"`{path}`: no such path"
        elif is_module and path not in names():
            yield match.start(), f"`{path}`: no such module"
        elif is_test and not has_test(path, match["test"]):
            yield match.start(), f"`{path}::{match['test']}`: no such test"
    if text.is_markdown or text.path.parts[len(ROOT.parts)] not in PRODUCT:
        return
    for match in MODULE.finditer(text.text):
        path = match["path"]
        if resolve(text, path) is None and not (("/" not in path) and path in names()):
            yield match.start(), f"{path}: no such module"


@cache
def functions_in(name: str) -> frozenset[str]:
    """The names of the tests in the modules of that name."""
    return frozenset(
        item
        for text in texts()
        if text.path.name == name
        for item in re.findall(r"^(?:async )?def (test_\w+)", text.text, re.MULTILINE)
    )


def has_test(path: str, test: str) -> bool:
    """Whether a module of that name has the test."""
    return test in functions_in(Path(path).name)


def faults_of_decisions(text: Text) -> Iterator[tuple[int, str]]:
    """Yield the records of decisions that do not exist."""
    for match in DECISION.finditer(text.text):
        folders = [
            folder
            for folder in [*ROOT.glob("*/adr"), *ROOT.glob("*/*/adr"), *ROOT.glob("*/*/*/adr")]
            if not match["folder"] or (f"{folder}/").endswith(f"/{match['folder']}adr/")
        ]
        if not any(True for folder in folders for _ in folder.glob(f"{match['number']}-*.md")):
            yield match.start(), f"{match.group()}: no such decision"


def faults_of_foreign_documents(text: Text) -> Iterator[tuple[int, str]]:
    """Yield the citations of documents that are kept outside the repository."""
    yield from (
        (match.start(), f"{match.group()}: outside the repository") for match in FOREIGN.finditer(text.text)
    )


def check(faults_of: Callable[[Text], Iterator[tuple[int, str]]]) -> None:
    """Fail with all faults of a kind, each as `file:line: citation: fault`."""
    faults = [f"{text.at(position)}: {fault}" for text in texts() for position, fault in faults_of(text)]
    if faults:
        pytest.fail("\n".join([f"{len(faults)} references do not resolve:", *faults]), pytrace=False)


def test_cited_documents_sections_and_rules_exist():
    check(faults_of_citations)


def test_no_document_outside_the_repository_is_cited():
    check(faults_of_foreign_documents)


def test_links_lead_to_files_and_headings():
    check(faults_of_links)


def test_paths_of_the_repository_exist():
    check(faults_of_paths)


def test_cited_decisions_exist():
    check(faults_of_decisions)


def test_the_index_of_decisions_lists_each_record_once():
    records = sorted(
        path.relative_to(ROOT).as_posix() for name in PRODUCT for path in (ROOT / name).rglob("adr/*.md")
    )
    index = (INTERNALS / "README.md").read_text()
    assert (
        sorted(re.findall(r"^\| \[[\w -]+\]\(\.\./\.\./(\S+/adr/\S+\.md)\)", index, re.MULTILINE)) == records
    )
    numbers = [re.sub(r"-[^/]*$", "", record) for record in records]
    assert len(numbers) == len(set(numbers))


def test_functions_of_the_index_exist():
    index = (INTERNALS / "where-to-look.md").read_text()
    rows = re.findall(r"^\|[^|]+\| `([^`]+)` \| (.+) \|$", index, re.MULTILINE)
    assert len(rows) == index.count("\n| ") - 1  # all lines of the table except its header
    for path, functions in rows:
        defined = re.findall(r"^ *def (\w+)", (ROOT / path).read_text(), re.MULTILINE)
        assert set(re.findall(r"`(\w+)`", functions)) <= set(defined), path
