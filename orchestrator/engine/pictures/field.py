"""A field: a byte per resource of a stack and its nested stacks, in the order of level, stack and name.

The lower four bits of a byte are a state, the bit DRIFT says that the resource is not in sync with its
object. `encode` and `encode_changes` define the format of responses (docs/console.md "Field").
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import orjson

from orchestrator.json_types import JsonMapping, JsonObject

MAGIC: Final = b"FLD1"
STATES: Final = ("planned", "in_progress", "complete", "failed", "deleting", "deleted", "suspended")
DRIFT: Final = 0x80
STATE_BITS: Final = 0x0F
MAX_BANDS: Final = 200  # levels of a response; a field with more levels is drawn without bands
MAX_CHANGES: Final = 65_536  # of a response; after more changes the whole field is sent
_DENSE: Final = 8  # an index by id has at most so many times the entries of the field


@dataclass(slots=True)
class Field:
    """The resources of a stack and the stacks below it. `ids` and `states` have the order of the field."""

    ids: array[int]
    states: bytearray
    levels: list[int]  # number of resources per level
    order: str = ""  # version of the order; by default a hash of ids and levels
    counts: list[int] = field(default_factory=list)  # resources by the value of their byte
    is_draft: bool = False  # a first picture, without levels
    _index: _Index | None = None
    _groups: array[int] | None = None  # group of each position
    _group_counts: Counter[tuple[int, int]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Derive the version and the counts."""
        if not self.order:
            levels = array("q", self.levels).tobytes()
            self.order = hashlib.blake2b(self.ids.tobytes() + levels, digest_size=8).hexdigest()
        self.counts = byte_counts(self.states)

    def with_states(self, states: bytearray) -> Field:
        """Return the same resources with other states."""
        return Field(self.ids, states, self.levels, self.order, is_draft=self.is_draft)

    def position(self, id_: int) -> int | None:
        """Return the position of a resource, None if it is not in the field."""
        if self._index is None:
            self._index = _Index(self.ids)
        return self._index.position(id_)

    def change(self, position: int, state: int) -> bool:
        """Set the byte of a resource; return whether it was another."""
        before = self.states[position]
        if before == state:
            return False
        self.states[position] = state
        self.counts[before] -= 1
        self.counts[state] += 1
        if self._groups is not None:
            group = self._groups[position]
            self._group_counts[group, before] -= 1
            self._group_counts[group, state] += 1
        return True

    def group_counts(self, groups: array[int]) -> dict[tuple[int, int], int]:
        """Return the number of resources by group and byte. The first call counts all; later ones for the
        same groups cost as much as there are groups, because each change is counted when it happens.
        """
        if self._groups is not groups:
            self._group_counts = Counter(zip(groups, self.states, strict=True))
            self._groups = groups
        return {key: number for key, number in self._group_counts.items() if number}

    def replace_states(self, states: bytes) -> list[int]:
        """Set all bytes; return the positions that differ."""
        before, size = bytes(self.states), 4_096
        found = [
            position
            for start in range(0, len(states), size)
            if before[start : start + size] != states[start : start + size]
            for position in range(start, min(start + size, len(states)))
            if before[position] != states[position]
        ]
        for position in found:
            self.change(position, states[position])
        return found

    @property
    def tag(self) -> str:
        """Return a hash of order and states."""
        return f"{self.order}-{hashlib.blake2b(self.states, digest_size=8).hexdigest()}"

    def summary(self) -> JsonObject:
        """Return the counts."""
        body: JsonObject = {
            "order": self.order,
            "count": len(self.states),
            "counts": dict.fromkeys(STATES, 0) | {"drift": 0},
            "levels_count": len(self.levels),
            "levels": self.levels if len(self.levels) <= MAX_BANDS else [],
        }
        for value, number in enumerate(self.counts):
            if number:
                body["counts"][STATES[min(value & STATE_BITS, len(STATES) - 1)]] += number
                body["counts"]["drift"] += number if value & DRIFT else 0
        return body | ({"draft": True} if self.is_draft else {})


class _Index:
    """The positions of a field by id: an array if the ids are dense, otherwise a dictionary."""

    __slots__ = ("_dense", "_first", "_sparse")

    def __init__(self, ids: Sequence[int]) -> None:
        self._first = min(ids, default=0)
        span = max(ids, default=-1) + 1 - self._first
        self._sparse: dict[int, int] | None = None
        if span > _DENSE * (len(ids) + 128):
            self._sparse = {id_: position for position, id_ in enumerate(ids)}
            return
        self._dense = array("i", b"\xff\xff\xff\xff" * span)  # -1
        first, dense = self._first, self._dense
        for position, id_ in enumerate(ids):
            dense[id_ - first] = position

    def position(self, id_: int) -> int | None:
        if self._sparse is not None:
            return self._sparse.get(id_)
        at = id_ - self._first
        if not 0 <= at < len(self._dense) or self._dense[at] < 0:
            return None
        return self._dense[at]


def byte_counts(states: bytes | bytearray) -> list[int]:
    """Return how often each value of a byte occurs."""
    return [states.count(value) if value in _VALUES else 0 for value in range(256)]


_VALUES: Final = frozenset(state | flag for state in range(len(STATES)) for flag in (0, DRIFT))


def with_drift(ids: Iterable[int], states: bytearray, drifted: Mapping[int, object] | frozenset[int]) -> None:
    """Set the flag of the resources in `drifted`."""
    if drifted:
        for position, id_ in enumerate(ids):
            if id_ in drifted:
                states[position] |= DRIFT


def encode(header: JsonMapping, states: bytes | bytearray) -> bytes:
    """Return a field as a response: magic, length of the header, header as JSON, a byte per resource."""
    text = orjson.dumps(header)
    return MAGIC + struct.pack("<I", len(text)) + text + states


def encode_changes(header: JsonMapping, positions: Sequence[int], states: bytes | bytearray) -> bytes:
    """Return changes as a response: as `encode`, with the positions (unsigned, 32 bits, little endian) and
    then a byte for each.
    """
    text = orjson.dumps({**header, "changed": len(positions)})
    text += b" " * (-len(text) % 4)  # aligns the positions
    packed = struct.pack(f"<{len(positions)}I", *positions)
    return MAGIC + struct.pack("<I", len(text)) + text + packed + bytes(map(states.__getitem__, positions))
