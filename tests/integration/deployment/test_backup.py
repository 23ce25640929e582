"""A dump of a database at work, restored on another server with an empty broker: the work goes on from there,
and nothing is made twice. The commands stand in docs/operations.md.
"""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg

from orchestrator.embedded.accounts import server_account
from orchestrator.embedded.binaries import postgres_bin
from orchestrator.embedded.postgres import ROLE
from orchestrator.embedded.valkey import Valkey
from tests.conftest import OwnServer
from tests.integration.cluster import (
    RECOVERY_SECONDS,
    Cluster,
    eventually,
    made_once,
    new_cluster,
    thing,
    thing_type_known,
)
from tests.plugins.thing_fixture import ThingServer, things
from tests.template_cluster import as_administrator

__all__ = ["new_cluster", "thing_type_known", "things"]

DOCS = Path(__file__).parents[3] / "docs" / "operations.md"
# Simulates sequences of the old server that are ahead of the new server.
BUSIER = "UPDATE event SET xid = (xid::text::bigint + 1000000)::text::xid8"
OPEN = "SELECT count(*) FROM resource WHERE op IS NOT NULL"


def documented(beginning: str) -> str:
    """Return the line of the documentation that begins so."""
    [line] = [line for line in DOCS.read_text().splitlines() if line.startswith(beginning)]
    return line


def run(command: str, **places: str) -> None:
    """Run a documented command with the servers' own programs."""
    program, *keywords = (
        places.get(keyword.removeprefix("$").strip('"$'), keyword) for keyword in command.split()
    )
    subprocess.run([str(postgres_bin(server_account()) / program), *keywords], check=True, timeout=120)


def test_a_dump_taken_in_the_middle_of_a_create_is_restored_elsewhere_and_completes(
    new_cluster: Callable[..., Cluster],
    postgres_url: str,
    own_postgres: OwnServer,
    valkey_server: Valkey,
    broker_numbers: Iterator[int],
    things: ThingServer,
    tmp_path: Path,
) -> None:
    resources = {f"a{number}": thing(value="x") for number in range(3)}
    # created, not yet reported
    resources |= {f"b{number}": thing(["a0"], slow_after=4) for number in range(4)}
    resources |= {f"c{number}": thing([f"b{number}"]) for number in range(4)}
    resources["secret"] = {"type": "OS::Heat::RandomString"}
    first = new_cluster(postgres_url, valkey_server.url(next(broker_numbers)), checkers=1)
    uuid = first.create("saved", resources)
    eventually(lambda: len(things.made("saved")) == 7 and first.rows(OPEN) == [(4,)], RECOVERY_SECONDS)
    for name in first.processes:
        first.signal(name, signal.SIGSTOP)  # the last that is known of them
    dump = tmp_path / "orchestrator.dump"
    run(documented("pg_dump "), DATABASE_URL=postgres_url, **{"orchestrator.dump": str(dump)})
    for name in list(first.processes):
        first.kill(name)

    with psycopg.connect(as_administrator(own_postgres.url), autocommit=True) as db:
        db.execute(f"CREATE DATABASE restored OWNER {ROLE}")
    restored = own_postgres.url.replace("/orchestrator?", "/restored?")
    run(documented("pg_restore "), NEW_DATABASE_URL=restored, **{"orchestrator.dump": str(dump)})
    statement = re.search(r'"(UPDATE event .*)"', documented("psql "))
    assert statement
    with psycopg.connect(restored) as db:
        db.execute(BUSIER)
        foreign = "SELECT count(*) FROM event WHERE xid >= pg_snapshot_xmin(pg_current_snapshot())"
        assert db.execute(foreign).fetchone() != (0,)  # to followers they would not have happened yet
        db.execute(statement[1])
        assert db.execute(foreign).fetchone() == (0,)
    second = new_cluster(restored, valkey_server.url(next(broker_numbers)), checkers=1, key=first.key)
    second.wait(uuid, "CREATE_COMPLETE")
    made_once(things, "saved", resources)
    [(reported,)] = second.rows(
        "SELECT array_agg(reason ORDER BY xid, id) FROM event WHERE resource_name = 'saved'"
    )
    assert reported == ["Stack CREATE started", "Stack CREATE completed successfully"]
    second.delete("saved")
    second.wait(uuid, "DELETE_COMPLETE")
    assert things.alive("saved") == {}
