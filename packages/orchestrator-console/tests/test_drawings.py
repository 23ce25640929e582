"""The layout of a map, and the axis of a timeline."""

from __future__ import annotations

import pytest

from orchestrator_console.drawings.map_layout import HEIGHT, WIDTH, lay_out
from orchestrator_console.drawings.time_axis import Axis, Fold


def test_boxes_do_not_overlap_and_requirements_are_on_the_left() -> None:
    levels, edges = [n // 20 for n in range(60)], [(n, n - 20) for n in range(20, 60)]
    layout = lay_out(levels, edges)
    places = [(box.x, box.y) for box in layout.boxes]
    assert len(set(places)) == len(levels)
    for x, y in places:
        assert not any(
            abs(x - x2) < WIDTH and abs(y - y2) < HEIGHT for x2, y2 in places if (x2, y2) != (x, y)
        )
        assert x + WIDTH <= layout.width
        assert y + HEIGHT <= layout.height
    assert all(layout.boxes[required].x < layout.boxes[dependent].x for dependent, required in edges)


def test_an_empty_map_has_a_size() -> None:
    assert lay_out([], []).boxes == ()


def test_folded_times_have_a_fixed_width() -> None:
    axis = Axis(0, 100, [Fold(1, 50), Fold(61, 99)])
    places = [axis.place(time) for time in (0, 1, 50, 61, 99, 100)]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (0.0, 1.0)
    assert places[2] - places[1] == pytest.approx(0.015)
    assert places[3] - places[2] > 0.8
    assert (axis.place(-5), axis.place(500)) == (0.0, 1.0)


def test_an_axis_of_no_time_is_harmless() -> None:
    assert 0.0 <= Axis(5, 5).place(5) <= 1.0
