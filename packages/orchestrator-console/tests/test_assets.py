"""Files of the console: pinned files of other projects, and the weight of a page."""

from __future__ import annotations

import hashlib
import re

from orchestrator_console.assets import FOLDER, PINS, TYPES

MAX_PAGE_BYTES = 150_000  # scripts and styles of a page, before compression


def test_files_of_other_projects_are_those_that_are_pinned_and_have_a_licence() -> None:
    found = {
        str(path.relative_to(FOLDER)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (FOLDER / "vendor").iterdir()
        if path.suffix in TYPES
    }
    assert found == dict(PINS)
    for name in PINS:
        licence = FOLDER / "vendor" / f"{name.removeprefix('vendor/').partition('.')[0]}.LICENSE"
        assert licence.read_text()


def test_all_files_together_are_lighter_than_a_page_may_be() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.suffix in TYPES) < MAX_PAGE_BYTES


def test_pages_have_no_inline_scripts_styles_or_handlers() -> None:
    for path in (FOLDER.parent / "pages").iterdir():
        text = path.read_text()
        assert not re.search(r"<script(?![^>]*\ssrc=)", text), path
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", text), path
        assert "| safe" not in text, path
