"""What the child of a group is made from: a short text, however many members it has.

The text says who there is, as ranges of numbers, and which definition each has by a digest. The definitions
are values of a parameter, so that no member carries a copy, and hidden where the engine hides parameters.
Nobody may send such a text: its version key is none that `format_of` takes.
"""

from __future__ import annotations

import hashlib
from collections.abc import ItemsView, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

import orjson

from orchestrator.template import versions
from orchestrator.template.definition import NOBODY, NOTHING, RepeatedDefinitions, ResourceDefinition
from orchestrator.template.formats import GROUP_FORMAT, Format
from orchestrator.template.functions.member import NAME, member
from orchestrator.template.index_ranges import Ordinals
from orchestrator.template.parameters import MASK, ParameterSchema, ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.section_rules import DESCRIPTION
from orchestrator.template.template import Draft, Template, load, read

PARAMETER: Final = "definitions"  # the parameter that holds them
KEYS: Final = ("properties", "metadata", "deletion_policy", "update_policy", "external_id")  # may be given
MOST_SHOWN: Final = 1_000  # members in what is shown of such a text
SHOWN_AS: Final = "2015-04-30"

_MARK: Final = f'{{"{GROUP_FORMAT.key}":'.encode()
_DIGEST_CHARACTERS: Final = 24
_PARAMETERS: Final = frozenset((PARAMETER,))
_NAME_BITS, _NAME_CHARACTERS = 60, 12
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz234567"
_VALUES: Final = {letter: value for value, letter in enumerate(_LETTERS)}


@dataclass(frozen=True, slots=True)
class Definition:
    """What a member is made from, values only; `index_var` stands for its name in texts of properties."""

    type: str
    body: Mapping[str, Any] = field(default_factory=dict)  # by `KEYS`
    index_var: str | None = None

    @property
    def digest(self) -> str:
        """Return what tells it from any other."""
        text = orjson.dumps(
            [self.type, self.index_var, self.body], option=orjson.OPT_SORT_KEYS, default=_unknown
        )
        return hashlib.sha256(text).hexdigest()[:_DIGEST_CHARACTERS]

    def value(self) -> dict[str, Any]:
        """Return what the parameter holds under its digest."""
        indexed = {"index_var": self.index_var} if self.index_var is not None else {}
        return {**indexed, **self.body}


@dataclass(frozen=True, slots=True)
class Part:
    """The members of one definition."""

    digest: str
    type: str
    keys: tuple[str, ...]
    members: Ordinals

    @classmethod
    def of(cls, definition: Definition, members: Ordinals) -> Part:
        """Return the part of these members."""
        keys = tuple(key for key in KEYS if key in definition.body)
        return cls(definition.digest, definition.type, keys, members)


@dataclass(frozen=True, slots=True)
class Members:
    """Who is in a group, and made from what.

    Members are numbers. They are called by these, or, with a `seed`, by names of twelve characters that no
    two numbers have in common; `given` is the first number that never was one's. With a `window` each member
    waits for the one so many before it.
    """

    parts: tuple[Part, ...] = ()
    seed: str = ""
    given: int = 0
    window: int = 0

    @property
    def all(self) -> Ordinals:
        """Return all members."""
        found = Ordinals()
        for part in self.parts:
            found |= part.members
        return found

    def with_definition(self, digest: str) -> Ordinals:
        """Return the members of a definition."""
        found = Ordinals()
        for part in self.parts:
            if part.digest == digest:
                found |= part.members
        return found

    def subset(self, members: Ordinals) -> tuple[Part, ...]:
        """Return the parts without anybody else."""
        kept = (replace(part, members=part.members & members) for part in self.parts)
        return tuple(part for part in kept if part.members)

    def name(self, number: int) -> str:
        """Return what a member is called."""
        return _scattered(number, self.seed) if self.seed else str(number)

    def number(self, name: str) -> int | None:
        """Return which member is called so, None for what is nobody's name."""
        if self.seed:
            return _gathered(name, self.seed)
        return int(name) if name.isascii() and name.isdigit() and str(int(name)) == name else None

    def names(self, members: Ordinals) -> list[str]:
        """Return what members are called, the lowest number first."""
        return [self.name(number) for number in members]

    def numbers(self, names: Iterator[str] | Sequence[str]) -> Ordinals:
        """Return those of the members that are called so."""
        found = (self.number(name) for name in names)
        return Ordinals.of(number for number in found if number is not None) & self.all

    def text(self) -> str:
        """Return it as it is stored."""
        document: dict[str, Any] = {
            GROUP_FORMAT.key: GROUP_FORMAT.version,
            "parts": [
                {
                    "digest": part.digest,
                    "type": part.type,
                    "keys": part.keys,
                    "members": part.members.text(),
                }
                for part in self.parts
            ],
        }
        if self.seed:
            document |= {"seed": self.seed, "given": self.given}
        if self.window:
            document["window"] = self.window
        return orjson.dumps(document).decode()

    @classmethod
    def parse(cls, text: bytes | str) -> Members:
        """Read what `text` wrote.

        Raises:
            ValueError: it is something else.
        """
        if not is_members(text):
            raise ValueError("no text of a group's members")
        document = orjson.loads(text)
        parts = tuple(
            Part(one["digest"], one["type"], tuple(one["keys"]), Ordinals.parse(one["members"]))
            for one in document["parts"]
        )
        return cls(
            parts,
            document.get("seed", ""),
            document.get("given", 0),
            document.get("window", 0),
        )

    def template(self) -> Template:
        """Return the template, its resources made when they are asked for."""
        written = {"type": "json", "description": "What the members are made from."}
        schema = ParameterSchema.from_hot(PARAMETER, written, versions.LATEST)
        return Template(
            GROUP_FORMAT.name,
            DESCRIPTION,
            {PARAMETER: schema},
            [],
            MemberDefinitions(self),
            {},
            written={PARAMETER: written},
        )


@dataclass(frozen=True, slots=True)
class MemberDefinition(ResourceDefinition):
    """One member as written. Its digest is made of that of its definition, whose values need not be read."""

    mark: bytes = b""

    def digest(self, values: ParameterValues, beside: object = None) -> bytes:  # noqa: ARG002
        """Return 32 bytes that differ when its definition, its name, what it waits for or is beside does."""
        text = orjson.dumps(beside, option=orjson.OPT_SORT_KEYS) if beside else b""
        return hashlib.sha256(self.mark + text).digest()


class MemberDefinitions(RepeatedDefinitions):
    """The resources of a group's child by name, each made when it is asked for."""

    def __init__(self, members: Members) -> None:
        """Take who there is."""
        self.members = members
        self._all = members.all

    def __len__(self) -> int:
        """Return how many there are, without making one."""
        return len(self._all)

    def __iter__(self) -> Iterator[str]:
        """Go over the names, the lowest number first."""
        return map(self.members.name, self._all)

    def __contains__(self, name: object) -> bool:
        """Whether there is such a member, without making it."""
        return isinstance(name, str) and self.members.number(name) in self._all

    def __getitem__(self, name: str) -> ResourceDefinition:
        """Make one."""
        number = self.members.number(name)
        if number is not None:
            for part in self.members.parts:
                if number in part.members:
                    return self._made(name, number, part)
        raise KeyError(name)

    def items(self) -> ItemsView[str, ResourceDefinition]:
        """Return names and members, without looking for each by its name."""
        return _Items(self)

    def pairs(self) -> Iterator[tuple[str, ResourceDefinition]]:
        """Yield names and members, the lowest number first."""
        first = [(start, stop, part) for part in self.members.parts for start, stop in part.members.ranges]
        for start, stop, part in sorted(first, key=lambda span: span[0]):
            for number in range(start, stop):
                name = self.members.name(number)
                yield name, self._made(name, number, part)

    def samples(self) -> Iterator[ResourceDefinition]:
        """Yield one member of each definition."""
        for part in self.members.parts:
            for number in part.members.head(1):
                yield self._made(self.members.name(number), number, part)

    def _made(self, name: str, number: int, part: Part) -> MemberDefinition:
        members = self.members
        body: dict[str, Any] = {"type": part.type}
        for key in part.keys:
            body[key] = {NAME: [PARAMETER, part.digest, name, key]}
        requires = NOBODY
        if members.window and (before := number - members.window) in self._all:
            requires = frozenset((members.name(before),))
        mark = f"{part.digest}/{name}/{'/'.join(requires)}".encode()
        return MemberDefinition(name, part.type, body, requires, NOTHING, _PARAMETERS, mark=mark)


class _Items(ItemsView[str, ResourceDefinition]):
    """Names and members; the lowest number first."""

    _mapping: MemberDefinitions

    def __iter__(self) -> Iterator[tuple[str, ResourceDefinition]]:
        return self._mapping.pairs()


def is_members(text: bytes | str) -> bool:
    """Whether a stored template is one of a group's child."""
    return (text.encode() if isinstance(text, str) else text[: len(_MARK)]).startswith(_MARK)


@dataclass(frozen=True, slots=True)
class MembersDraft:
    """A group's template as `template.Draft` is a user's."""

    text: str
    members: Members

    @property
    def form(self) -> Format:
        """Return the format."""
        return GROUP_FORMAT

    @property
    def document(self) -> Any:
        """Return the text as data."""
        return orjson.loads(self.text)

    @property
    def parameters(self) -> Mapping[str, ParameterSchema]:
        """Return the one parameter."""
        return self.members.template().parameters

    def define(self, values: ParameterValues | None = None) -> Template:  # noqa: ARG002 - it has no conditions
        """Return the template."""
        return self.members.template()


def read_stored(text: str, limits: Limits) -> Draft | MembersDraft:
    """Read a template that a type made, or a user's; see `template.read`."""
    return MembersDraft(text, Members.parse(text)) if is_members(text) else read(text, limits)


def load_stored(text: bytes | str, limits: Limits, values: ParameterValues | None = None) -> Template:
    """Read a stored template, be it a user's or a group's; see `template.load`."""
    return Members.parse(text).template() if is_members(text) else load(text, limits, values)


def as_hot(text: bytes | str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of a group's child: a template in HOT with its members, the first of them if there
    are very many. What is secret is masked.
    """
    members = Members.parse(text)
    held = values.get(PARAMETER)
    everybody = members.all
    shown: dict[str, Any] = {}
    template = members.template()
    for number in everybody.head(MOST_SHOWN):
        name = members.name(number)
        definition = template.resources[name]
        shown[name] = {
            key: value if key == "type" else _shown(value[NAME], held)
            for key, value in definition.body.items()
        }
        if definition.requires:
            shown[name]["depends_on"] = sorted(definition.requires)
    document: dict[str, Any] = {versions.HOT_KEY: SHOWN_AS}
    if len(everybody) > MOST_SHOWN:
        document["description"] = f"The first {MOST_SHOWN} of {len(everybody)} members"
    return {**document, "resources": shown}


class _Values:
    """As much of a view as `member` looks at."""

    def __init__(self, held: Mapping[str, Any]) -> None:
        self._held = held

    def parameter(self, name: str) -> Any:  # noqa: ARG002 - there is but one
        return self._held


def _shown(args: list[str], held: Any) -> Any:
    if not isinstance(held, Mapping) or args[1] not in held:
        return MASK
    return member(_Values(held), args)  # type: ignore[arg-type]


def _scattered(number: int, seed: str) -> str:
    """Return a number's name. Multiplying by what is odd loses nothing, so that no two share one."""
    factor, shift = _key(seed)
    value = (number * factor + shift) % (1 << _NAME_BITS)
    return "".join([_LETTERS[value >> bits & 31] for bits in range(_NAME_BITS - 5, -1, -5)])


def _gathered(name: str, seed: str) -> int | None:
    """Return the number that `_scattered` gave the name to."""
    if len(name) != _NAME_CHARACTERS or not all(letter in _VALUES for letter in name):
        return None
    value = 0
    for letter in name:
        value = value << 5 | _VALUES[letter]
    factor, shift = _key(seed)
    return (value - shift) * pow(factor, -1, 1 << _NAME_BITS) % (1 << _NAME_BITS)


@lru_cache(maxsize=64)
def _key(seed: str) -> tuple[int, int]:
    drawn = hashlib.blake2b(seed.encode(), digest_size=16).digest()
    return int.from_bytes(drawn[:8], "big") | 1, int.from_bytes(drawn[8:], "big")


def _unknown(value: object) -> str:
    """Return what stands for a value that is not known yet, while validating."""
    return repr(value)
