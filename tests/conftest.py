"""Fixtures for all tests: real servers from their wheels, started at the first use.

* `postgres_url`: a new database with the schema, for a single test; `new_database()` creates more, also for a
  module.
* `broker_url`: an empty database of a Valkey, for a single test, as a Celery URL; `broker` is its client.
* `own_postgres`, `own_valkey`: servers of a single test, which may kill and start them.
* `simulated_cloud`: the session's simulated OpenStack, without delays.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
from hypothesis import HealthCheck, settings

from orchestrator import gc_policy
from orchestrator.embedded.postgres import DATABASE, ROLE, Postgres
from orchestrator.embedded.process import Child, Process, running
from orchestrator.embedded.valkey import Valkey, connect
from simulated_openstack.cloud import SimulatedCloud, running_cloud
from tests import constants, template_cluster
from tests.collection import rotation
from tests.template_cluster import FAST_SETTINGS

# A loaded machine generates slowly; that says nothing about the code under test.
settings.register_profile("any_machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any_machine")


# Garbage collections take a tenth of the time in which thousands of tests are loaded, and find nothing.
gc_policy.disable_collection()


def pytest_configure(config: pytest.Config) -> None:
    """Share the compilation of the test modules among parallel processes (tests/collection.py)."""
    if plugin := rotation():
        config.pluginmanager.register(plugin)


def pytest_collection_finish() -> None:
    """Exempt the tests from garbage collection, which is on again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Distribute modules to the processes of a parallel run (tests/scheduling.py)."""
    from tests.scheduling import ModuleScheduling

    return ModuleScheduling(config, log)


collect_ignore = ["plugins/shelf"]  # a third party's, whose own tests run where it is installed
BROKER_DATABASES = 4096


class OwnServer:
    """A server that a test may kill and start again; where it is reached stays the same."""

    def __init__(self, child: Child, log: Path, url: str) -> None:
        self.child, self.log, self.url = child, log, url
        self.process: Process | None = None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.returncode is None

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.process = Process(self.child, self.log)
        self.process.wait_ready()

    def stop(self) -> None:
        """Stop it in an orderly way."""
        if self.process is not None:
            self.process.stop()

    def kill(self) -> None:
        """End it as `kill -9` does."""
        assert self.process is not None
        self.process.kill_group()
        assert self.process.wait(10)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """The session's PostgreSQL, with a migrated database to copy."""
    folder = tmp_path_factory.mktemp("postgres")
    template_cluster.copy_to(folder / "data", FAST_SETTINGS)
    server = Postgres(folder / "data", FAST_SETTINGS)
    with running(server.child(), folder / "postgres.log"):
        yield server


@pytest.fixture(scope="session")
def new_database(postgres_server: Postgres) -> Iterator[Callable[[], str]]:
    """Make a database with the schema and nothing else in it; return its URL. They are dropped at the end."""
    numbers = itertools.count(1)

    def make() -> str:
        name = f"test_{next(numbers)}"
        with psycopg.connect(postgres_server.administrator_url(), autocommit=True) as connection:
            # By way of the log, as PostgreSQL does by itself, it takes twice the time.
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {DATABASE} OWNER {ROLE} STRATEGY FILE_COPY")
        return postgres_server.url(name)

    return make


@pytest.fixture
def postgres_url(postgres_server: Postgres, new_database: Callable[[], str]) -> Iterator[str]:
    """The URL of a new database for a single test."""
    url = new_database()
    yield url
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    with psycopg.connect(postgres_server.administrator_url(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    """The session's Valkey."""
    folder = tmp_path_factory.mktemp("valkey")
    server = Valkey(folder / "data", databases=BROKER_DATABASES)
    with running(server.child(), folder / "valkey.log"):
        yield server


@pytest.fixture(scope="session")
def broker_numbers() -> Iterator[int]:
    """The numbers of the Valkey databases not used yet."""
    return iter(range(1, BROKER_DATABASES))


@pytest.fixture
def broker_url(valkey_server: Valkey, broker_numbers: Iterator[int]) -> str:
    """The URL of an empty Valkey database for a single test."""
    return valkey_server.url(next(broker_numbers))


@pytest.fixture
def broker(broker_url: str) -> Iterator[redis.Redis]:
    """A client of the database at `broker_url`."""
    with connect(broker_url) as client:
        yield client


@pytest.fixture
def own_postgres(tmp_path: Path) -> Iterator[OwnServer]:
    """A running PostgreSQL for a single test, with the schema in its database."""
    template_cluster.copy_to(tmp_path / "own-postgres", FAST_SETTINGS)
    server = Postgres(tmp_path / "own-postgres", FAST_SETTINGS)
    own = OwnServer(server.child(), tmp_path / "own-postgres.log", server.url())
    own.start()
    yield own
    own.stop()


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[OwnServer]:
    """A running Valkey for a single test."""
    server = Valkey(tmp_path / "own-valkey")
    own = OwnServer(server.child(), tmp_path / "own-valkey.log", server.url())
    own.start()
    yield own
    own.stop()


@pytest.fixture(scope="session")
def simulated_cloud() -> Iterator[SimulatedCloud]:
    """The session's simulated OpenStack, in a thread.

    `auth_url`, users `admin` and `demo` with `password`, project `demo`. Changes of state are complete at the
    next request. `faults.set({...})` scripts failures. Tests delete their objects and end the faults.
    """
    with running_cloud() as cloud:
        yield cloud


@pytest.fixture(autouse=True)
def _constants() -> Iterator[None]:
    """Restore constants that a test replaced."""
    yield
    constants.restore_after_test()
