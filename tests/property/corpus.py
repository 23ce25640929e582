"""The collection of real templates, where it is at hand; CORPUS_DIR says where."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
CORPUS: Final = Path(os.environ.get("CORPUS_DIR") or ROOT.parent / "shared" / "corpus") / "templates"
TEMPLATES: Final = [
    path for path in sorted(CORPUS.rglob("*")) if path.suffix in {".yaml", ".yml", ".template", ".json"}
]


def name(path: Path) -> str:
    """Return the id of a test about a file."""
    return path.relative_to(CORPUS if path.is_relative_to(CORPUS) else ROOT).as_posix()
