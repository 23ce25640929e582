"""The lock file of the development environment has every package that a test uses."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[2]
SKIP = "pytest." + "importorskip"


def test_no_test_is_skipped_for_a_missing_package() -> None:
    assert [str(file) for file in TESTS.rglob("*.py") if SKIP in file.read_text()] == []
