"""A world for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from tests.scenarios.world import World


@pytest.fixture(scope="module")
def shared_url(new_database: Callable[[], str]) -> str:
    """A database for the tests of a module."""
    return new_database()


@pytest.fixture
def emptied_url(shared_url: str) -> str:
    """A database of the module's, with nothing in it."""
    with psycopg.connect(shared_url, autocommit=True) as db:
        tables = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        names = ", ".join(name for (name,) in tables if name != "alembic_version")
        db.execute(f"TRUNCATE {names} RESTART IDENTITY CASCADE".encode())
    return shared_url


@pytest.fixture
def world(postgres_url: str) -> Iterator[World]:
    """A fresh installation."""
    made = World(postgres_url)
    yield made
    made.close()
