"""Symbolic links in data directories, and directories in the wrong hands."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

import pytest

from orchestrator.embedded.accounts import server_account
from orchestrator.embedded.data_dir import DataDir
from orchestrator.embedded.postgres import Postgres
from orchestrator.embedded.process import Child, Process
from orchestrator.errors import Misconfigured
from tests.hostile.other_user import NOBODY, as_root

FAST = {"fsync": "off", "shared_buffers": "64MB"}
SECRET = "the content of a file of root"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    file = tmp_path / "victim"
    file.write_text(SECRET)
    return file


def require_untouched(victim: Path) -> None:
    assert victim.read_text() == SECRET
    assert victim.stat().st_uid == os.geteuid()


def prepare_all(root: Path) -> None:
    folder = DataDir(root)
    folder.keys_file()
    folder.valkey().prepare()
    folder.postgres().prepare()


def server_uid() -> int:
    account = server_account()
    return os.geteuid() if account is None else account.uid


# Links.


@pytest.mark.parametrize(
    "name", ["orchestrator.conf", "pg_hba.conf", "pg_ident.conf", "postmaster.pid", ".s.PGSQL.5432.lock"]
)
def test_a_link_in_the_directory_of_the_database_is_replaced(tmp_path: Path, victim: Path, name: str) -> None:
    server = Postgres(tmp_path / "postgres", FAST)
    server.prepare()
    (server.directory / name).unlink(missing_ok=True)
    (server.directory / name).symlink_to(victim)
    with contextlib.suppress(Misconfigured):  # postmaster.pid is not read through a link
        server.prepare()
    require_untouched(victim)


@pytest.mark.parametrize("name", ["postgres", "valkey", "logs", "run", "keys", "lock", "postgres.new"])
def test_a_link_in_the_data_directory_changes_nothing_elsewhere(
    tmp_path: Path, victim: Path, name: str
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    before = target.stat()
    root = tmp_path / "data"
    root.mkdir(mode=0o700)
    (root / name).symlink_to(victim if name in {"keys", "lock"} else target)
    with pytest.raises(Misconfigured):
        prepare_all(root)
    after = target.stat()
    assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)
    assert list(target.iterdir()) == []
    require_untouched(victim)


def test_a_log_is_not_written_through_a_link(tmp_path: Path, victim: Path) -> None:
    log = tmp_path / "log"
    log.symlink_to(victim)
    with pytest.raises(Misconfigured, match="cannot write the log"):
        Process(Child(name="echo", argv=("echo", "intruder")), log)
    require_untouched(victim)


# The place of the data directory.


@pytest.mark.parametrize("mode", [0o777, 0o757, 0o1777])
def test_a_data_directory_writable_by_others_is_refused(tmp_path: Path, mode: int) -> None:
    root = tmp_path / "data"
    root.mkdir()
    root.chmod(mode)
    with pytest.raises(Misconfigured, match=re.escape(f"{root} is writable by other users: run `chmod go-w")):
        DataDir(root)


def test_a_parent_writable_by_others_is_refused_unless_sticky(tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    parent.mkdir()
    parent.chmod(0o777)
    with pytest.raises(Misconfigured, match=re.escape(f"{parent} is writable by other users")):
        DataDir(parent / "data")
    parent.chmod(0o1777)
    DataDir(parent / "data")


@as_root
@pytest.mark.parametrize("owned", ["data", "parent", "grandparent", "group"])
def test_directories_of_other_users_are_refused(tmp_path: Path, owned: str) -> None:
    places = {"grandparent": tmp_path / "a", "parent": tmp_path / "a/b", "data": tmp_path / "a/b/data"}
    places["data"].mkdir(parents=True)
    if owned == "group":
        os.chown(places["parent"], 0, NOBODY)
        places["parent"].chmod(0o775)
    else:
        os.chown(places[owned], NOBODY, NOBODY)
    with pytest.raises(Misconfigured, match=r"different user|writable by other users"):
        DataDir(places["data"])


@as_root
def test_a_link_of_a_different_user_on_the_way_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    link = tmp_path / "link"
    link.symlink_to(target)
    DataDir(link / "data")
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(Misconfigured, match="symbolic link of a different user"):
        DataDir(link / "data")


@as_root
@pytest.mark.parametrize("name", ["postgres", "valkey"])
def test_a_server_directory_of_a_different_user_is_refused(tmp_path: Path, name: str) -> None:
    folder = DataDir(tmp_path / "data")
    directory = folder.root / name
    directory.mkdir()
    (directory / "PG_VERSION").write_text("18\n")
    os.chown(directory, 12345, 12345)
    server = folder.postgres() if name == "postgres" else folder.valkey()
    with pytest.raises(Misconfigured, match="different user"):
        server.prepare()
    assert directory.stat().st_uid == 12345
