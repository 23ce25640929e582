"""Diagnostics as a user sees them.

`python tests/golden/test_diagnostics.py` writes them again; then read the difference.
"""

from pathlib import Path

import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.template.diagnostics import render
from orchestrator.template.parse import Limits
from orchestrator.template.template import load

HERE = Path(__file__).parent / "diagnostics"
SOURCES = sorted(HERE.glob("*.yaml"))


def shown(source: Path) -> str:
    text = source.read_bytes()
    try:
        result = load(text, Limits()).warnings
    except InvalidTemplate as error:
        result = error.diagnostics
    return render(result, text, file=source.name)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_diagnostics_read_like_a_compilers(source):
    assert shown(source) == source.with_suffix(".txt").read_text()


if __name__ == "__main__":
    for each in SOURCES:
        each.with_suffix(".txt").write_text(shown(each))
