"""Layout of a map: boxes in columns by level, ordered so that few edges cross. Pure, linear per pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 220
HEIGHT: Final = 64
COLUMN_GAP: Final = 48
ROW_GAP: Final = 16
MARGIN: Final = 12
MAX_ROWS: Final = 16  # boxes in a column; a level with more has several columns
PASSES: Final = 4


@dataclass(frozen=True, slots=True)
class Box:
    """The place of a group, in pixels."""

    x: int
    y: int


@dataclass(frozen=True, slots=True)
class MapLayout:
    """The places of all groups, in their order, and the size of the drawing."""

    boxes: tuple[Box, ...]
    width: int
    height: int


def lay_out(levels: Sequence[int], edges: Sequence[tuple[int, int]]) -> MapLayout:
    """Return the places of the groups of a map, given the first level of each group, and edges between their
    positions: dependent, requirement.
    """
    columns = _columns(levels)
    before, after = _neighbours(edges)
    place = {group: float(row) for column in columns for row, group in enumerate(column)}
    for number in range(PASSES):
        forward = number % 2 == 0
        neighbours = before if forward else after
        for column in columns if forward else list(reversed(columns)):
            weights = {group: _barycentre(neighbours.get(group, ()), place, place[group]) for group in column}
            column.sort(key=lambda group: (weights[group], group))
            offset = (max(map(len, columns)) - len(column)) / 2
            place |= {group: offset + row for row, group in enumerate(column)}
    return _placed(columns, len(levels))


def _columns(levels: Sequence[int]) -> list[list[int]]:
    """Return the groups of each column: by first level, a crowded level in several columns."""
    by_level: dict[int, list[int]] = {}
    for group, first in enumerate(levels):
        by_level.setdefault(first, []).append(group)
    columns = []
    for level in sorted(by_level):
        inside = by_level[level]
        parts = -(-len(inside) // MAX_ROWS)
        length = -(-len(inside) // parts)
        columns += [inside[start : start + length] for start in range(0, len(inside), length)]
    return columns


def _neighbours(edges: Sequence[tuple[int, int]]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    before: dict[int, list[int]] = {}
    after: dict[int, list[int]] = {}
    for dependent, required in edges:
        before.setdefault(dependent, []).append(required)
        after.setdefault(required, []).append(dependent)
    return before, after


def _barycentre(neighbours: Sequence[int], place: Mapping[int, float], own: float) -> float:
    return sum(place[group] for group in neighbours) / len(neighbours) if neighbours else own


def _placed(columns: Sequence[Sequence[int]], count: int) -> MapLayout:
    tallest = max(map(len, columns), default=0)
    boxes = [Box(0, 0)] * count
    for number, column in enumerate(columns):
        top = MARGIN + (tallest - len(column)) * (HEIGHT + ROW_GAP) // 2
        for row, group in enumerate(column):
            boxes[group] = Box(MARGIN + number * (WIDTH + COLUMN_GAP), top + row * (HEIGHT + ROW_GAP))
    width = 2 * MARGIN + max(0, len(columns) * (WIDTH + COLUMN_GAP) - COLUMN_GAP)
    return MapLayout(tuple(boxes), width, 2 * MARGIN + max(0, tallest * (HEIGHT + ROW_GAP) - ROW_GAP))
