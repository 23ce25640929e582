"""Unusual YAML: every style, tag, anchor, merge and spelling of a scalar, mixed."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

_PLAIN: Final = """
    a resource x-y get_param http://h/p?q a#b é 日本 = << -x ?x :x - . ._ 1.2.3
    y n yes No ON off true False TRUE tRUE ~ null Null NULL nULL
    0 -0 +1 12 007 08 0o7 0x1F 0XFF -0x1 0b101 1_000 1__0_ 0x_ 0b_ 1:30 190:20:30 -1:00 1:60
    1.5 1. .5 -.5 +.5 0.0 1e3 1.0e3 1.e+3 1.0e+400 1_0.5_0 190:20:30.15 .inf -.INF +.inf .nan .NaN
    9223372036854775807 18446744073709551615 18446744073709551616
    -9223372036854775808 -9223372036854775809
    2013-05-23 2013-13-99 2001-12-14t21:59:43.10-05:00
"""
_ESCAPED: Final = r"""\x41 \u00e9 \u65e5 \U0001F600 \n \t \e \_ \N \L \P \" \\ \/ \0 \a a é ' # %"""
WORDS: Final = [*_PLAIN.split(), "b c", "2001-12-14 21:59:43"]
FLOW_WORDS: Final = [word for word in WORDS if word not in {"?x", ":x", "-"}]
ESCAPES: Final = [*_ESCAPED.split(), r"\ ", " ", ": ", "\\\n   ", "\n ", "\n\n  "]
SINGLE: Final = ["a", " ", "''", '"', "\\", "# ", ": ", "é", "\n ", "\n\n ", "{", "*x", "12"]
TAGGED: Final = [
    *("!!str 12", "!!str yes", "!!str", "!!str '~'", "!!str 2013-05-23", "!<tag:yaml.org,2002:str> 12"),
    *("! 12", "! '1'", "!!timestamp 2013-05-23", "!!null ''", "!!null x"),
    *("!!int '12'", "!!int 0x1F", "!!int x", "!!int ''", "!!float 1", "!!float '1e3'", "!!float x"),
    *("!!float ''", "!!bool yes", "!!bool 'Off'", "!!bool 2", "!!bool ''"),
]
LINES: Final = ["text", "  more", "", " ", "# no comment", "- x", "a: b", "'", "\ttab", "é", "%x", "a  b "]
LEVELS: Final = 4


@st.composite
def yaml_texts(draw: DrawFn) -> str:
    """Return the text of a document that is a map, mostly."""
    return _Writer(draw).document()


class _Writer:
    """Writes a document."""

    def __init__(self, draw: DrawFn) -> None:
        self.draw = draw
        self.anchors: list[tuple[str, bool]] = []  # and whether it is a map
        self.size = self.names = 0

    def one_of(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def often(self) -> bool:
        return self.draw(st.integers(0, 3)) > 0

    def seldom(self) -> bool:
        return self.draw(st.integers(0, 5)) == 5

    def count(self, most: int) -> int:
        self.size += 1
        return self.draw(st.integers(0, most)) if self.size < 12 else 0

    def document(self) -> str:
        start = self.one_of("", "", "---\n", "# comment\n", "%YAML 1.1\n---\n", "\ufeff")
        body = self.block_map(0, LEVELS) if self.often() else self.flow(LEVELS) + "\n"
        return start + body + self.one_of("", "", "...\n", "# end")

    def anchor(self) -> tuple[str, str]:
        """Return the mark of an anchor, mostly none, and its name to be known when its value is written."""
        if not self.seldom():
            return "", ""
        self.names += 1
        name = f"a{self.names}"
        return f"&{name} ", name

    def known(self, name: str, *, is_map: bool) -> None:
        if name:
            self.anchors.append((name, is_map))

    def alias(self, *, only_maps: bool = False) -> str | None:
        names = [name for name, is_map in self.anchors if is_map or not only_maps]
        return f"*{self.draw(st.sampled_from(names))} " if names else None

    def scalar(self, keywords: list[str]) -> str:
        match self.one_of("word", "word", "tagged", "single", "double"):
            case "word":
                return self.draw(st.sampled_from(keywords))
            case "tagged":
                return self.draw(st.sampled_from(TAGGED))
            case "single":
                return "'" + "".join(self.draw(st.lists(st.sampled_from(SINGLE), max_size=4))) + "'"
            case _:
                return '"' + "".join(self.draw(st.lists(st.sampled_from(ESCAPES), max_size=4))) + '"'

    def flow(self, levels: int) -> str:
        """Return a node in braces and brackets, or a scalar."""
        alias = self.alias() if self.seldom() else None
        if alias:
            return alias
        kind = self.one_of("scalar", "scalar", "map", "list") if levels else "scalar"
        mark, name = self.anchor()
        if kind == "scalar":
            text = self.scalar(FLOW_WORDS)
        elif kind == "list":
            text = (
                self.one_of("[", "!!seq [")
                + ", ".join(self.flow(levels - 1) for _ in range(self.count(3)))
                + "]"
            )
        else:
            entries = [f"{self.key(FLOW_WORDS)}: {self.flow(levels - 1)}" for _ in range(self.count(3))]
            entries += [f"<<: {merged}" for merged in self.merged()]
            text = self.one_of("{", "!!map {") + ", ".join(entries) + "}"
        self.known(name, is_map=kind == "map")
        return mark + text

    def key(self, keywords: list[str]) -> str:
        text = self.scalar(keywords)
        return text if "\n" not in text and text != "<<" else "k"

    def merged(self) -> list[str]:
        """Return the source of a map's merge key, mostly nothing."""
        alias = self.alias(only_maps=True) if self.often() else None
        if alias is None:
            return []
        other = self.alias(only_maps=True)
        return [self.one_of(alias, f"[{alias}, {other}]", f"[{other}, {{b c: 1}}, {alias}]", "{a: 1, 12: 2}")]

    def block(self, indent: int, levels: int) -> str:
        """Return a node as it follows a colon or a dash, to the end of its last line."""
        kind = self.one_of("flow", "flow", "text", "map", "list") if levels else "flow"
        blanks = " " * indent
        if kind == "flow":
            return f" {self.flow(levels)}{self.one_of('', '', ' # why')}\n"
        mark, name = self.anchor()
        if kind == "text":
            text = f" {mark}{self.block_text(indent)}"
        elif kind == "map":
            text = f" {mark}\n{self.block_map(indent, levels)}"
        else:
            items = [f"{blanks}-{self.block(indent + 2, levels - 1)}" for _ in range(1 + self.count(3))]
            text = f" {mark}\n" + "".join(items)
        self.known(name, is_map=kind == "map")
        return text

    def block_map(self, indent: int, levels: int) -> str:
        blanks = " " * indent
        entries = []
        for _ in range(1 + self.count(3)):
            key = self.key([keyword for keyword in WORDS if keyword not in {"-", "?x", "<<"}])
            explicit = self.seldom()
            start = f"{blanks}? {key}\n{blanks}:" if explicit else f"{blanks}{key} :"
            entries.append(start + self.block(indent + self.draw(st.integers(1, 3)), levels - 1))
        entries += [f"{blanks}<<: {merged}\n" for merged in self.merged()]
        return "".join(entries)

    def block_text(self, indent: int) -> str:
        """Return a literal or folded text with its header."""
        deep = self.draw(st.integers(1, 4))
        lines = self.draw(st.lists(st.sampled_from(LINES), max_size=5))
        header = self.one_of("|", ">") + self.one_of("", "-", "+")
        if self.seldom() or not lines or lines[0][:1] in {"", " "}:
            deep = min(deep, 9)
            header += str(deep) if indent else ""
            outer = max(indent - 1, 0)
        else:
            outer = indent
        return f"{header}{self.one_of('', ' # why')}\n" + "".join(
            f"{' ' * (outer + deep)}{line}\n" for line in lines
        )
