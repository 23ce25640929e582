"""The template of a group's child: a short text, independent of the number of members.

The text stores the members as ranges of numbers, and their definitions by digest. The definitions are values
of a parameter: members share them, and they are hidden like other parameters. Requests cannot contain such a
text: `format_of` does not accept its version key.
"""

from __future__ import annotations

import hashlib
from collections.abc import ItemsView, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

import orjson

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.template import versions
from orchestrator.template.definition import NO_ATTRIBUTES, NO_NAMES, RepeatedDefinitions, ResourceDefinition
from orchestrator.template.formats import GROUP_FORMAT, Format
from orchestrator.template.functions.member import NAME, member, member_secrets
from orchestrator.template.index_ranges import Ordinals
from orchestrator.template.parameters import MASK, ParameterSchema, ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.section_rules import DESCRIPTION
from orchestrator.template.template import Draft, Template, load, read

PARAMETER: Final = "definitions"  # the parameter that holds them
# optional keys of a definition
KEYS: Final = ("properties", "metadata", "deletion_policy", "update_policy", "external_id")
MAX_SHOWN: Final = 1_000  # maximum number of members shown by the API
SHOWN_AS: Final = "2015-04-30"

_MARK: Final = f'{{"{GROUP_FORMAT.key}":'.encode()
_DIGEST_CHARACTERS: Final = 24
_PARAMETERS: Final = frozenset((PARAMETER,))
_NAME_BITS, _NAME_CHARACTERS = 60, 12
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz234567"
_VALUES: Final = {letter: value for value, letter in enumerate(_LETTERS)}


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a member, values only; `index_var` is replaced by the member's name in texts of
    properties.
    """

    type: str
    body: JsonMapping = field(default_factory=dict)  # by `KEYS`
    index_var: str | None = None

    @property
    def digest(self) -> str:
        """Return the identity of the definition."""
        text = orjson.dumps(
            [self.type, self.index_var, self.body], option=orjson.OPT_SORT_KEYS, default=_unknown
        )
        return hashlib.sha256(text).hexdigest()[:_DIGEST_CHARACTERS]

    def value(self) -> JsonObject:
        """Return the definition's value in the parameter."""
        indexed = {"index_var": self.index_var} if self.index_var is not None else {}
        return {**indexed, **self.body}


@dataclass(frozen=True, slots=True)
class Part:
    """The members with the same definition."""

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
    """The members of a group and their definitions.

    Members are numbers. A member's name is its number or, with a `seed`, a text of twelve characters that is
    unique for each number; `given` is the first number that was never used. With a `window`, each member
    requires the member `window` numbers before it.
    """

    parts: tuple[Part, ...] = ()
    seed: str = ""
    first_unused: int = 0
    window: int = 0

    @property
    def all(self) -> Ordinals:
        """Return all members."""
        result = Ordinals()
        for part in self.parts:
            result |= part.members
        return result

    def with_definition(self, digest: str) -> Ordinals:
        """Return the members of a definition."""
        result = Ordinals()
        for part in self.parts:
            if part.digest == digest:
                result |= part.members
        return result

    def subset(self, members: Ordinals) -> tuple[Part, ...]:
        """Return the parts, reduced to these members."""
        reduced = (replace(part, members=part.members & members) for part in self.parts)
        return tuple(part for part in reduced if part.members)

    def name(self, number: int) -> str:
        """Return the name of a member."""
        return _name_of(number, self.seed) if self.seed else str(number)

    def number(self, name: str) -> int | None:
        """Return the number of a name, None if no member can have the name."""
        if self.seed:
            return _number_of(name, self.seed)
        return int(name) if name.isascii() and name.isdigit() and str(int(name)) == name else None

    def names(self, members: Ordinals) -> list[str]:
        """Return the names of members, lowest number first."""
        return [self.name(number) for number in members]

    def numbers(self, names: Iterator[str] | Sequence[str]) -> Ordinals:
        """Return the numbers of those names that belong to members."""
        numbers_ = (self.number(name) for name in names)
        return Ordinals.of(number for number in numbers_ if number is not None) & self.all

    def text(self) -> str:
        """Return the stored form."""
        document: JsonObject = {
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
            document |= {"seed": self.seed, "given": self.first_unused}
        if self.window:
            document["window"] = self.window
        return orjson.dumps(document).decode()

    @classmethod
    def parse(cls, text: bytes | str) -> Members:
        """Parse the stored form.

        Raises:
            ValueError: not the text of a group.
        """
        if not is_members(text):
            raise ValueError("not the text of a group")
        document = orjson.loads(text)
        parts = tuple(
            Part(part["digest"], part["type"], tuple(part["keys"]), Ordinals.parse(part["members"]))
            for part in document["parts"]
        )
        return cls(
            parts,
            document.get("seed", ""),
            document.get("given", 0),
            document.get("window", 0),
        )

    def template(self) -> Template:
        """Return the template; its resources are created on demand."""
        written = {"type": "json", "description": "The definitions of the members."}
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
    """A member as written. Its digest is derived from the digest of its definition, without reading the
    values.
    """

    mark: bytes = b""

    def digest(self, values: ParameterValues, extra: object = None) -> bytes:  # noqa: ARG002
        """Return a 32-byte digest of the definition's digest, the name, the requirements and `extra`."""
        text = orjson.dumps(extra, option=orjson.OPT_SORT_KEYS) if extra else b""
        return hashlib.sha256(self.mark + text).digest()


class MemberDefinitions(RepeatedDefinitions):
    """The resources of a group's child by name, created on demand."""

    def __init__(self, members: Members) -> None:
        """Provide these members."""
        self.members = members
        self._all = members.all

    def __len__(self) -> int:
        """Return the number of members, without creating them."""
        return len(self._all)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, lowest number first."""
        return map(self.members.name, self._all)

    def __contains__(self, name: object) -> bool:
        """Return whether the member exists, without creating it."""
        return isinstance(name, str) and self.members.number(name) in self._all

    def __getitem__(self, name: str) -> ResourceDefinition:
        """Create a member's definition."""
        number = self.members.number(name)
        if number is not None:
            for part in self.members.parts:
                if number in part.members:
                    return self._made(name, number, part)
        raise KeyError(name)

    def items(self) -> ItemsView[str, ResourceDefinition]:
        """Return names and members without a look-up by name."""
        return _Items(self)

    def pairs(self) -> Iterator[tuple[str, ResourceDefinition]]:
        """Yield names and members, the lowest number first."""
        first = [(start, stop, part) for part in self.members.parts for start, stop in part.members.ranges]
        for start, stop, part in sorted(first, key=lambda span: span[0]):
            for number in range(start, stop):
                name = self.members.name(number)
                yield name, self._made(name, number, part)

    def samples(self) -> Iterator[ResourceDefinition]:
        """Yield a member of each definition."""
        for part in self.members.parts:
            for number in part.members.head(1):
                yield self._made(self.members.name(number), number, part)

    def _made(self, name: str, number: int, part: Part) -> MemberDefinition:
        members = self.members
        body: JsonObject = {"type": part.type}
        for key in part.keys:
            body[key] = {NAME: [PARAMETER, part.digest, name, key]}
        requires = NO_NAMES
        if members.window and (before := number - members.window) in self._all:
            requires = frozenset((members.name(before),))
        mark = f"{part.digest}/{name}/{'/'.join(requires)}".encode()
        return MemberDefinition(name, part.type, body, requires, NO_ATTRIBUTES, _PARAMETERS, mark=mark)


class _Items(ItemsView[str, ResourceDefinition]):
    """Names and members; the lowest number first."""

    _mapping: MemberDefinitions

    def __iter__(self) -> Iterator[tuple[str, ResourceDefinition]]:
        return self._mapping.pairs()


def is_members(text: bytes | str) -> bool:
    """Return whether a stored template is the text of a group."""
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
        """Return the parameter with the definitions."""
        return self.members.template().parameters

    def define(self, values: ParameterValues | None = None) -> Template:  # noqa: ARG002 - it has no conditions
        """Return the template."""
        return self.members.template()


def read_stored(text: str, limits: Limits) -> Draft | MembersDraft:
    """Read a stored template: of a user, or of a group; see `template.read`."""
    return MembersDraft(text, Members.parse(text)) if is_members(text) else read(text, limits)


def load_stored(text: bytes | str, limits: Limits, values: ParameterValues | None = None) -> Template:
    """Read a stored template, be it a user's or a group's; see `template.load`."""
    return Members.parse(text).template() if is_members(text) else load(text, limits, values)


def as_hot(text: bytes | str, values: JsonMapping, *, secret: bool = False) -> JsonObject:
    """Return a group's child for the API: a HOT template with its members, limited to the first `MAX_SHOWN`.
    Secrets are masked; `secret`: the values contain some.
    """
    members = Members.parse(text)
    member_values = values.get(PARAMETER)
    all_members = members.all
    shown: JsonObject = {}
    template = members.template()
    for number in all_members.head(MAX_SHOWN):
        name = members.name(number)
        definition = template.resources[name]
        shown[name] = {
            key: value if key == "type" else _shown(value[NAME], member_values, secret=secret)
            for key, value in definition.body.items()
        }
        if definition.requires:
            shown[name]["depends_on"] = sorted(definition.requires)
    document: JsonObject = {versions.HOT_KEY: SHOWN_AS}
    if len(all_members) > MAX_SHOWN:
        document["description"] = f"The first {MAX_SHOWN} of {len(all_members)} members"
    return {**document, "resources": shown}


class _Values:
    """The part of a view that `member` uses."""

    def __init__(self, values: JsonMapping) -> None:
        self._values = values

    def parameter(self, name: str) -> Any:  # noqa: ARG002 - a single parameter
        return self._values


def _shown(args: list[str], value: object, *, secret: bool) -> Any:
    if not isinstance(value, Mapping) or args[1] not in value:
        return MASK
    view: Any = _Values(value)
    if not secret:
        return member(view, args)
    secrets = member_secrets(view, args)
    return MASK if secrets is None else secrets.masked(member(view, args))


def _name_of(number: int, seed: str) -> str:
    """Return the name of a number. The multiplication by an odd factor is a bijection, so names are
    unique.
    """
    factor, shift = _key(seed)
    value = (number * factor + shift) % (1 << _NAME_BITS)
    return "".join([_LETTERS[value >> bits & 31] for bits in range(_NAME_BITS - 5, -1, -5)])


def _number_of(name: str, seed: str) -> int | None:
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
    """Return a placeholder for a value that is unknown during validation."""
    return repr(value)
