"""The count of dialect words."""

from __future__ import annotations

from pathlib import Path

from tools.prose_words import count, prose_of


def words_and_hits(file: Path) -> tuple[int, dict[str, int]]:
    keywords, hits = count(prose_of(file))
    return keywords, dict(hits)


def test_comments_and_docstrings_of_python_count(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text('"""Nobody knows."""\n\nvalue = "who what"  # told twice\n')
    assert words_and_hits(file) == (4, {"nobody": 1, "told": 1})


def test_code_in_markdown_does_not_count(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("One page, `what` it has:\n\n```\nwho, whoever\n```\n")
    assert words_and_hits(file) == (4, {"one": 1})
