"""The servers out of their wheels: started from nothing, stopped, killed, and nothing lost."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import kombu
import psycopg
import pytest

from orchestrator.embedded import binaries
from orchestrator.embedded import postgres as postgres_module
from orchestrator.embedded.accounts import Account
from orchestrator.embedded.data_dir import DataDir
from orchestrator.embedded.postgres import Postgres
from orchestrator.embedded.process import Child, Process, running
from orchestrator.embedded.valkey import Valkey, connect
from orchestrator.errors import Misconfigured
from tests.patience import Patience, took_at_most

as_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="copies are made for another user, which only root can be"
)


def eventually(condition: Callable[[], object], seconds: float = 10.0) -> None:
    patience = Patience(seconds)
    while not condition():
        assert patience.left(), "it never happened"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.fixture
def server(tmp_path: Path) -> Postgres:
    return Postgres(tmp_path / "postgres")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[Child], Process]]:
    """Start children, each stopped at the end of the test."""
    started: list[Process] = []

    def start(child: Child) -> Process:
        process = Process(child, tmp_path / f"{child.name}.log")
        started.append(process)
        process.wait_ready()
        return process

    yield start
    for process in reversed(started):
        process.stop()


def write(url: str, keyword: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (word text)")
        connection.execute("INSERT INTO kept VALUES (%s)", (keyword,))


def read(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("SELECT word FROM kept ORDER BY word")]


def server_says(server: Postgres, query: str) -> object:
    with psycopg.connect(server.url()) as connection:
        row = connection.execute(query).fetchone()
    return row is not None and row[0]


def test_a_database_keeps_its_rows_over_a_stop(server: Postgres, tmp_path: Path) -> None:
    with running(server.child(), tmp_path / "log"):
        write(server.url(), "once")
    with running(server.child(), tmp_path / "log"):
        assert read(server.url()) == ["once"]


def test_only_its_owner_can_reach_the_database(server: Postgres, start: Callable[[Child], Process]) -> None:
    start(server.child())
    assert stat.S_IMODE(server.directory.stat().st_mode) == 0o700
    with psycopg.connect(server.url()) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        assert connection.execute("SHOW fsync").fetchone() == ("on",)


def test_a_killed_database_starts_again_with_its_rows_while_a_query_was_running(
    server: Postgres, start: Callable[[Child], Process]
) -> None:
    first = start(server.child())
    write(server.url(), "committed")
    with psycopg.connect(server.url()) as busy:
        requests = threading.Event()

        def ask() -> None:
            requests.set()
            with pytest.raises(psycopg.OperationalError):
                busy.execute("SELECT count(*) FROM generate_series(1, 1000000000000)")

        asking = threading.Thread(target=ask)
        asking.start()
        requests.wait()
        pid = busy.info.backend_pid
        eventually(
            lambda: server_says(server, f"SELECT state = 'active' FROM pg_stat_activity WHERE pid = {pid}")
        )
        first.kill_group()
        begun = time.monotonic()
        start(server.child())  # the busy process outlives the postmaster until it is killed
        assert read(server.url()) == ["committed"]
        assert took_at_most(begun, 10)
        asking.join()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a stranger cannot be told from a server")
@pytest.mark.parametrize("holder", ["stranger", "zombie"])
def test_a_pid_file_that_names_another_process_stops_nothing(
    server: Postgres, start: Callable[[Child], Process], holder: str
) -> None:
    first = start(server.child())
    write(server.url(), "committed")
    first.kill_group()
    assert first.wait(10)
    other = subprocess.Popen(["sleep", "60" if holder == "stranger" else "0"])
    try:
        eventually(lambda: alive(other.pid) == (holder == "stranger"))
        pid_file = server.directory / "postmaster.pid"
        _, *rest = pid_file.read_text().split("\n")
        pid_file.write_text("\n".join([str(other.pid), *rest]))
        start(server.child())
        assert read(server.url()) == ["committed"]
    finally:
        other.kill()
        other.wait()


SUPERVISOR = """
import sys, time
from pathlib import Path
from orchestrator.embedded import postgres as postgres_module
from orchestrator.embedded.postgres import Postgres
from orchestrator.embedded.process import Process
from orchestrator.embedded.valkey import Valkey
folder = Path(sys.argv[1])
postgres, valkey = Postgres(folder / "postgres"), Valkey(folder / "valkey")
processes = [Process(server.child(), folder / "log") for server in (postgres, valkey)]
for process in processes:
    process.wait_ready()
print(*(process.pid for process in processes), flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent died")
def test_servers_die_with_their_supervisor_even_when_it_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", SUPERVISOR, tmp_path], stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        pids = [int(keyword) for keyword in supervisor.stdout.readline().split()]
        server = Postgres(tmp_path / "postgres")
        write(server.url(), "committed")
        supervisor.kill()
    eventually(lambda: not any(alive(pid) for pid in pids))
    with running(server.child(), tmp_path / "log"):
        assert read(server.url()) == ["committed"]


def postgres_children(server: Postgres, kind: str) -> list[int]:
    """Return the processes of a server whose titles contain `kind`."""
    query = "SELECT pid FROM pg_stat_activity WHERE backend_type = %s"
    with psycopg.connect(server.administrator_url()) as connection:
        return [row[0] for row in connection.execute(query, (kind,))]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a stranger cannot be told from a server")
def test_a_server_of_a_killed_supervisor_that_does_not_end_by_itself_is_ended(
    server: Postgres, start: Callable[[Child], Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_module, "STOP_SECONDS", 0.5)
    orphan = start(server.child())
    write(server.url(), "committed")
    [checkpointer] = postgres_children(server, "checkpointer")
    os.kill(checkpointer, signal.SIGSTOP)  # without it no shutdown ends
    orphan.signal(server.child().death_signal)
    pid_file = server.directory / "postmaster.pid"
    eventually(lambda: "stopping" in pid_file.read_text())
    start(server.child())
    assert read(server.url()) == ["committed"]
    assert not alive(checkpointer)
    assert orphan.wait(10)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a stranger cannot be told from a server")
def test_a_server_that_somebody_runs_on_the_data_is_refused_and_left_alone(
    server: Postgres, start: Callable[[Child], Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_module, "STOP_SECONDS", 0.1)
    monkeypatch.setattr(postgres_module, "END_SECONDS", 0.1)
    start(server.child()).stop()
    ours = server.child()
    theirs = start(replace(ours, argv=(*ours.argv, "-c", "work_mem=5MB")))
    with pytest.raises(Misconfigured, match=f"process {theirs.pid}.* is still running"):
        server.prepare()
    assert server_says(server, "SHOW work_mem") == "5MB"


def test_two_installations_run_side_by_side(tmp_path: Path, start: Callable[[Child], Process]) -> None:
    servers = [Postgres(tmp_path / name) for name in ("one", "two")]
    brokers = [Valkey(tmp_path / f"broker-{name}") for name in ("one", "two")]
    for server, broker in zip(servers, brokers, strict=True):
        start(server.child())
        start(broker.child())
        write(server.url(), server.directory.name)
        with connect(broker.url()) as client:
            client.set("name", broker.directory.name)
    assert [read(server.url()) for server in servers] == [["one"], ["two"]]
    with connect(brokers[0].url()) as client:
        assert client.get("name") == b"broker-one"


def test_a_path_too_long_for_a_socket_works_all_the_same(
    tmp_path: Path, start: Callable[[Child], Process]
) -> None:
    deep = tmp_path / ("long" * 20) / ("name" * 20)
    deep.mkdir(parents=True)
    server, broker = Postgres(deep / "postgres"), Valkey(deep / "valkey")
    start(server.child())
    start(broker.child())
    write(server.url(), "deep")
    assert read(server.url()) == ["deep"]
    with connect(broker.url()) as client:
        assert client.ping()


def test_an_interrupted_first_start_is_repeated(server: Postgres, start: Callable[[Child], Process]) -> None:
    half = server.directory.with_name("postgres.new")
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    start(server.child())
    write(server.url(), "whole")
    assert not half.exists()


def test_data_of_another_version_is_refused(server: Postgres) -> None:
    server.directory.mkdir()
    (server.directory / "PG_VERSION").write_text("16\n")
    with pytest.raises(Misconfigured, match="PostgreSQL 16"):
        server.prepare()
    assert [path.name for path in server.directory.iterdir()] == ["PG_VERSION"]


def test_an_operator_may_tune_the_database_in_a_file_of_his_own(
    server: Postgres, start: Callable[[Child], Process]
) -> None:
    start(server.child()).stop()
    (server.directory / "local.conf").write_text("work_mem = '33MB'\n")
    start(server.child())
    with psycopg.connect(server.url()) as connection:
        assert connection.execute("SHOW work_mem").fetchone() == ("33MB",)


def test_a_program_that_ends_at_once_is_reported_with_its_last_words(tmp_path: Path) -> None:
    child = Child(
        name="broken",
        argv=(sys.executable, "-c", "import sys; sys.exit('no such thing as a free lunch')"),
        ready=lambda _pid: False,
    )
    with pytest.raises(Misconfigured, match=r"(?s)broken ended with status 1.*no such thing as a free lunch"):
        Process(child, tmp_path / "broken.log").wait_ready()


def test_a_program_that_ignores_the_stop_signal_is_killed(tmp_path: Path) -> None:
    deaf = "import signal as s; s.signal(s.SIGTERM, s.SIG_IGN); print('deaf', flush=True); s.pause()"
    log = tmp_path / "deaf.log"
    child = Child(
        name="deaf",
        argv=(sys.executable, "-c", deaf),
        ready=lambda _pid: "deaf" in log.read_text(),
        stop_seconds=0.2,
    )
    with running(child, log) as process:
        pass
    assert process.returncode == -signal.SIGKILL


def test_the_broker_keeps_nothing_and_evicts_nothing(own_valkey, tmp_path: Path) -> None:
    with connect(own_valkey.url) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        client.set("rung", "1")
    own_valkey.kill()
    own_valkey.start()
    with connect(own_valkey.url) as client:
        assert client.keys() == []
    assert [path.name for path in (tmp_path / "own-valkey").iterdir()] == ["valkey.sock"]


def test_celerys_transport_speaks_to_the_broker(broker_url: str) -> None:
    with kombu.Connection(broker_url) as connection, connection.SimpleQueue("check") as queue:
        queue.put({"node": 1})
        message = queue.get(timeout=5)
        message.ack()
        assert message.payload == {"node": 1}


def test_every_test_has_a_broker_database_of_its_own(broker, valkey_server: Valkey, broker_numbers) -> None:
    broker.set("mine", "1")
    with connect(valkey_server.url(next(broker_numbers))) as other:
        assert other.keys() == []


def test_a_test_may_kill_its_own_database(own_postgres) -> None:
    write(own_postgres.url, "committed")
    own_postgres.kill()
    with pytest.raises(psycopg.OperationalError):
        read(own_postgres.url)
    own_postgres.start()
    assert read(own_postgres.url) == ["committed"]


@as_root
def test_copies_of_the_programs_are_for_everybody_and_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "CACHE", tmp_path / "cache")
    account = Account("nobody", 65534, 65534)
    result: list[Path] = []
    racers = [
        threading.Thread(target=lambda: result.append(binaries.postgres_bin(account))) for _ in range(2)
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert result[0] == result[1]
    assert len(list((tmp_path / "cache").iterdir())) == 1
    assert all(path.stat().st_mode & 0o004 for path in result[0].iterdir())
    assert os.access(result[0] / "postgres", os.X_OK)
    inode = (result[0] / "postgres").stat().st_ino
    assert (binaries.postgres_bin(account) / "postgres").stat().st_ino == inode


@as_root
def test_a_copy_is_never_taken_from_a_folder_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "cache"
    planted.mkdir()
    os.chown(planted, 65534, 65534)
    monkeypatch.setattr(binaries, "CACHE", planted)
    monkeypatch.setattr(binaries.tempfile, "gettempdir", lambda: str(tmp_path / "none" / "such"))
    (tmp_path / "none").write_text("a file where a folder should be")
    with pytest.raises(Misconfigured, match="cannot copy the server programs"):
        binaries.valkey_server(Account("nobody", 65534, 65534))


def test_a_folder_in_use_is_refused_and_names_the_process(tmp_path: Path) -> None:
    folder = DataDir(tmp_path / "data")
    with folder.lock():
        assert folder.in_use
        with (
            pytest.raises(Misconfigured, match=rf"in use by process {os.getpid()}.*--data-dir"),
            folder.lock(),
        ):
            pass
    assert not folder.in_use
    with folder.lock():
        pass


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        Misconfigured, match=r"cannot write to .*file/data: .*; choose a different directory with --data-dir"
    ):
        DataDir(tmp_path / "file" / "data")


def test_the_encryption_key_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    folder = DataDir(tmp_path / "data")
    first = folder.keys_file().read_text()
    assert folder.keys_file().read_text() == first
    assert stat.S_IMODE(folder.keys_file().stat().st_mode) == 0o600
    assert len(first.strip()) == 44
