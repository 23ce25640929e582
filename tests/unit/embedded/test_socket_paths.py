"""Short paths for unix sockets."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.embedded import socket_paths

SOCKET = ".s.PGSQL.5432"


def test_a_short_folder_is_used_as_it_is(tmp_path: Path) -> None:
    folder = Path("/tmp/data")
    assert socket_paths.short_path(folder, SOCKET) == folder


@pytest.mark.parametrize("temporary", ["t", "t" * 90], ids=["TMPDIR", "a TMPDIR that is too long"])
def test_a_long_folder_gets_a_short_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, temporary: str
) -> None:
    folder = tmp_path / ("d" * 100)
    folder.mkdir()
    (tmp_path / temporary).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / temporary))
    short = socket_paths.short_path(folder, f"{SOCKET}{len(temporary)}")
    assert short.resolve() == folder
    assert len(str(short / SOCKET)) <= socket_paths.MAX_BYTES
