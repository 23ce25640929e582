"""Symbolic links in data directories, directories in the wrong hands, and directories of version 0.1."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from orchestrator.embedded.accounts import Account, identity, server_account
from orchestrator.embedded.binaries import postgres_bin
from orchestrator.embedded.data_dir import DataDir
from orchestrator.embedded.postgres import INCLUDES, SERVER_ENV, Postgres
from orchestrator.embedded.process import Child, Process, running
from orchestrator.embedded.valkey import Valkey
from orchestrator.errors import Misconfigured
from orchestrator.store.schema import migrate, version
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


@as_root
def test_a_file_with_a_second_name_elsewhere_is_not_adopted(tmp_path: Path) -> None:
    directory = tmp_path / "valkey"
    directory.mkdir()
    outside = tmp_path / "outside"
    outside.write_text(SECRET)
    os.link(outside, directory / "inside")
    for path in (directory, outside):
        os.chown(path, NOBODY, NOBODY)
    with pytest.raises(Misconfigured, match="several names"):
        Valkey(directory).prepare()
    assert outside.stat().st_uid == NOBODY


@as_root
def test_files_of_other_users_in_an_adopted_directory_keep_their_owner(tmp_path: Path, victim: Path) -> None:
    directory = tmp_path / "valkey"
    (directory / "folder").mkdir(parents=True)
    os.link(victim, directory / "of-root")
    (directory / "link").symlink_to(victim)
    for path in (directory, directory / "folder"):
        os.chown(path, NOBODY, NOBODY)
    Valkey(directory).prepare()
    require_untouched(victim)
    assert (directory / "folder").stat().st_uid == server_uid()


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


# Data directories of version 0.1.


@pytest.fixture
def former(tmp_path: Path) -> Postgres:
    """A database of version 0.1: trust for every local process, and the application is superuser."""
    account = Account("nobody", NOBODY, NOBODY) if os.geteuid() == 0 else None
    directory = tmp_path / "data" / "postgres"
    directory.mkdir(parents=True, mode=0o700)
    if account:
        os.chown(directory, NOBODY, NOBODY)
    programs = postgres_bin(account)
    here = ("-D", "/proc/self/cwd" if account else str(directory))
    subprocess.run(
        (
            *(str(programs / "initdb"), *here, "--no-sync", "-A", "trust", "-U", "orchestrator"),
            *("-E", "UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
        ),
        cwd=directory,
        env=SERVER_ENV,
        check=True,
        capture_output=True,
        **identity(account),
    )
    with (directory / "postgresql.conf").open("a") as file:
        file.write(INCLUDES + "fsync = off\n")
    server = Postgres(directory, FAST)
    child = replace(
        server.child(),
        argv=(str(programs / "postgres"), *here, "-k", ".", "-h", ""),
        account=account,
        prepare=lambda: None,
        ready=lambda _pid: answers(server.url("postgres")),
    )
    with running(child, tmp_path / "former.log"):
        with psycopg.connect(server.url("postgres"), autocommit=True) as db:
            db.execute("CREATE DATABASE orchestrator")
        migrate.upgrade(server.url())
        with psycopg.connect(server.url()) as db:
            db.execute("CREATE TABLE kept (id bigserial PRIMARY KEY, word text)")
            db.execute("INSERT INTO kept (word) VALUES ('kept')")
            db.execute("CREATE VIEW words AS SELECT word FROM kept")
            db.execute("CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    return server


def test_a_data_directory_of_version_0_1_is_converted(former: Postgres, tmp_path: Path) -> None:
    for _ in range(2):
        with running(former.child(), tmp_path / "log"):
            migrate.upgrade(former.url())
            assert version.current(former.url()) == version.head()
            with psycopg.connect(former.url()) as db:
                assert db.execute("SELECT word FROM words").fetchall() == [("kept",)]
                db.execute("ALTER TABLE kept ADD COLUMN IF NOT EXISTS added text")
                db.execute("ALTER TABLE stack ADD COLUMN IF NOT EXISTS added text")
                db.execute("DROP FUNCTION IF EXISTS one()")
                roles = db.execute(r"SELECT rolname, rolsuper FROM pg_roles WHERE rolname !~ '^pg_'")
                assert dict(roles.fetchall()) == {"orchestrator_admin": True, "orchestrator": False}
                owners = db.execute(
                    "SELECT DISTINCT pg_get_userbyid(relowner) FROM pg_class JOIN pg_namespace n"
                    " ON n.oid = relnamespace WHERE nspname = 'public'"
                )
                assert owners.fetchall() == [("orchestrator",)]
    uids = {path.stat().st_uid for path in [former.directory, *former.directory.rglob("*")]}
    assert uids == {server_uid()}


def test_an_interrupted_conversion_is_continued(former: Postgres, tmp_path: Path) -> None:
    child = former.child()
    with running(replace(child, ready=lambda _pid: answers(former.url("postgres"))), tmp_path / "log"):
        with psycopg.connect(former.url("postgres"), autocommit=True) as db:
            db.execute("CREATE ROLE orchestrator_upgrade LOGIN SUPERUSER")
        with psycopg.connect(former.url("postgres", "orchestrator_upgrade"), autocommit=True) as db:
            db.execute("ALTER ROLE orchestrator RENAME TO orchestrator_admin")
    with running(child, tmp_path / "log"), psycopg.connect(former.url()) as db:
        assert db.execute("SELECT word FROM words").fetchall() == [("kept",)]
        roles = db.execute(r"SELECT rolname FROM pg_roles WHERE rolname ~ '^orchestrator' ORDER BY 1")
        assert roles.fetchall() == [("orchestrator",), ("orchestrator_admin",)]


@as_root
def test_a_link_planted_by_nobody_in_a_former_directory_is_not_followed(
    former: Postgres, tmp_path: Path, victim: Path
) -> None:
    for name in ("orchestrator.conf", "pg_hba.conf"):
        (former.directory / name).unlink(missing_ok=True)
        (former.directory / name).symlink_to(victim)
        os.chown(former.directory / name, NOBODY, NOBODY, follow_symlinks=False)
    with running(former.child(), tmp_path / "log"):
        require_untouched(victim)
    require_untouched(victim)


def answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
