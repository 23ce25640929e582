"""Failover: the primary dies, its standby is promoted, and URLs with both hosts lead to the new primary."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import httpx
import psycopg
import pytest
from sqlalchemy import text

from orchestrator.config import Settings
from orchestrator.embedded.postgres import ADMINISTRATOR, DATABASE, ROLE, Postgres
from orchestrator.embedded.process import Process, running
from orchestrator.embedded.processes import api, environment
from orchestrator.security.encryption import new_key
from orchestrator.store.connections.database import UNREACHABLE, Database
from orchestrator.store.schema import migrate
from orchestrator.store.schema.version import current, head
from tests import template_cluster
from tests.conftest import OwnServer
from tests.e2e.running import eventually, free_port
from tests.template_cluster import FAST_SETTINGS

STACKS = "/v1/demo/stacks"
TEMPLATE = {"heat_template_version": "2021-04-16", "resources": {"a": {"type": "OS::Heat::TestResource"}}}
REPLICATION = {"wal_level": "replica", "max_wal_senders": "4", "hot_standby": "on"}


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[SimpleNamespace]:
    """A primary and its standby, which is a copy that follows it."""
    folders = (tmp_path / "one", tmp_path / "two")
    template_cluster.copy_to(folders[0], FAST_SETTINGS)
    # The account of the standby has no access to the folder of the primary's socket. The port is that of the
    # socket, so that parallel tests need an address each.
    address = f"127.{os.getpid() >> 16 & 255}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
    settings = {**FAST_SETTINGS, **REPLICATION}
    primary = Postgres(folders[0], {**settings, "listen_addresses": address})
    followed = psycopg.conninfo.make_conninfo("", host=address, user=ADMINISTRATOR)
    standby = Postgres(folders[1], {**settings, "primary_conninfo": followed})
    (folders[0] / "local_hba.conf").write_text("host replication all all trust\n")
    with running(primary.child(), tmp_path / "one.log"):
        pass  # a standby cannot follow from before the change of wal_level
    subprocess.run(("cp", "-a", *map(str, folders)), check=True)
    (folders[1] / "standby.signal").touch()

    def answers(_pid: int) -> bool:
        try:
            psycopg.connect(standby.administrator_url()).close()
        except psycopg.OperationalError:
            return False
        return True

    servers = (
        OwnServer(primary.child(), tmp_path / "one.log", primary.url()),
        OwnServer(replace(standby.child(), ready=answers), tmp_path / "two.log", standby.url()),
    )
    try:
        for server in servers:
            server.start()
        yield SimpleNamespace(primary=servers[0], standby=servers[1], standby_server=standby)
    finally:
        for server in servers:
            server.stop()


def with_both_hosts(pair: SimpleNamespace, form: str) -> str:
    """Return the URL with the standby first."""
    urls = (pair.standby.url, pair.primary.url)
    hosts = [str(psycopg.conninfo.conninfo_to_dict(url)["host"]) for url in urls]
    attributes = "target_session_attrs=read-write"
    if form == "hosts":
        addresses = ",".join(f"{quote(host, safe='')}:5432" for host in hosts)
        return f"postgresql://{ROLE}@{addresses}/{DATABASE}?{attributes}"
    return f"postgresql://{ROLE}@/{DATABASE}?host={','.join(hosts)}&port=5432,5432&{attributes}"


@pytest.mark.parametrize("form", ["hosts", "parameters"])
def test_every_kind_of_connection_finds_the_primary_among_two_hosts(pair: SimpleNamespace, form: str) -> None:
    url = with_both_hosts(pair, form)
    migrate.upgrade(url)
    assert current(url) == head()
    database = Database(url)
    with database.engine.begin() as connection:
        assert connection.execute(text("SELECT pg_is_in_recovery()")).scalar_one() is False
    with database.borrow() as db:
        assert db.execute("SELECT pg_is_in_recovery()").fetchone() == (False,)
    database.engine.dispose()


def test_a_standby_alone_is_refused_with_the_reason(pair: SimpleNamespace) -> None:
    database = Database(pair.standby.url)
    with pytest.raises(UNREACHABLE, match="it is a standby"), database.borrow():
        pytest.fail("lent")


def test_requests_continue_on_the_promoted_standby(
    pair: SimpleNamespace, tmp_path: Path, broker_url: str
) -> None:
    settings = Settings(auth="none", port=free_port(), data_dir=tmp_path)
    env = environment(settings, with_both_hosts(pair, "hosts"), broker_url, None)
    env |= {"ORCHESTRATOR_ENCRYPTION_KEYS": new_key()}
    process = Process(api(env, tmp_path, settings), tmp_path / "api.log")
    process.wait_ready()

    def create(name: str) -> int:
        body = {"stack_name": name, "template": TEMPLATE}
        return httpx.post(settings.address + STACKS, json=body, timeout=30).status_code

    try:
        assert create("before") == 201
        with psycopg.connect(pair.standby_server.url(), autocommit=True) as copy:
            eventually(lambda: copy.execute("SELECT 1 FROM stack WHERE name = 'before'").fetchone(), 20)
        pair.primary.kill()
        assert create("between") == 503
        with psycopg.connect(pair.standby_server.administrator_url(), autocommit=True) as db:
            db.execute("SELECT pg_promote()")
        eventually(lambda: httpx.get(settings.address + "/readyz", timeout=30).status_code == 200, 20)
        assert create("after") == 201
        listed = httpx.get(settings.address + STACKS, timeout=30).json()["stacks"]
        assert {stack["stack_name"] for stack in listed} == {"before", "after"}
    finally:
        process.stop()
