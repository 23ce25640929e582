"""The order of the layers and steps of a request is the documented one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from api.layers import WSGI_LAYERS
from api.request_steps import REQUEST_STEPS

PAGE = Path(__file__).parents[3] / "docs/internals/threat-model.md"
NUMBERED = re.compile(r"^\d+\. `(\w+)`: \S", re.MULTILINE)


@pytest.mark.parametrize(
    ("ordered", "file"),
    [
        ([layer.name for layer in WSGI_LAYERS], "api/layers.py"),
        ([step.__name__ for step in REQUEST_STEPS], "api/request_steps.py"),
    ],
    ids=["layers", "steps"],
)
def test_the_order_of_a_request_is_the_documented_one(ordered, file):
    section = PAGE.read_text().partition(f"(`{file}`)")[2].split("\n\n")[1]
    assert NUMBERED.findall(section) == ordered
