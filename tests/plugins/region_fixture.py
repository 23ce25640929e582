"""Another region: a second installation behind its own API on loopback, with its own tokens.

`region` has two projects. For readers of `catalog_file` each is its own region: "north" and "south". A
thread of this process does its work.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from flask import request
from werkzeug.serving import WSGIRequestHandler, make_server

from api.app import operations
from api.dependencies import Dependencies
from api.routes import assemble
from orchestrator.clients.region_catalog import catalog_of
from orchestrator.config import Settings
from orchestrator.engine.messages import Message
from orchestrator.resources.base import Context
from orchestrator.resources.registry import load_registry
from orchestrator.security.tokens import create_token
from tests.scenarios.world import World

PROJECT = "p1"  # of the scenarios' worlds


class _Quiet(WSGIRequestHandler):
    def log(self, *args: object) -> None:
        """Say nothing."""


class Region:
    """The other installation."""

    current: Region | None = None

    def __init__(self, url: str, folder: Path) -> None:
        self.world = World(url, auth="token")
        self.stopping = threading.Event()
        self.held = threading.Event()  # while set, nothing is done
        self.seen: list[tuple[str, str]] = []  # method and path of every request
        parts = Dependencies(
            self.world.settings,
            self.world.database,
            self.world.cipher,
            load_registry(),
            operations(),
            self._take,
        )
        app = assemble(parts)
        app.before_request(self._note)
        self.server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=_Quiet)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.threads = [
            threading.Thread(target=self.server.serve_forever),
            threading.Thread(target=self._work),
        ]
        self.projects = {name: f"project-{name}" for name in ("north", "south")}
        self.tokens = {
            name: create_token(self.world.database, project) for name, project in self.projects.items()
        }
        self.catalog_file = folder / "catalog.yaml"
        self.catalog_file.write_text(
            yaml.safe_dump(
                {
                    "regions": {
                        name: {
                            "url": self.url,
                            "projects": {PROJECT: {"project": project, "token": self.tokens[name]}},
                        }
                        for name, project in self.projects.items()
                    }
                }
            )
        )

    def __enter__(self) -> Region:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.server.shutdown()
        for thread in self.threads:
            thread.join()
        self.server.server_close()

    def settings(self) -> dict[str, Any]:
        """Return the settings of an installation that knows this region."""
        return {"catalog_file": self.catalog_file, "region_name": "north"}

    def stacks(self, region: str = "north") -> dict[str, str]:
        """Return the stacks that are there by name, with their states."""
        rows = self.world.rows(
            "SELECT name, action, status FROM stack WHERE project_id = :p AND deleted_at IS NULL",
            p=self.projects[region],
        )
        return {row.name: f"{row.action}_{row.status}" for row in rows}

    def _note(self) -> None:
        self.seen.append((request.method, request.path))

    def _take(self, rings: Sequence[Message]) -> None:
        self.world.messages += rings

    def _work(self) -> None:
        world = self.world
        while not self.stopping.is_set():
            if self.held.is_set():
                time.sleep(0.02)
            elif world.messages:
                world.deliver_one(world.messages.pop(0))
            elif not world.sweep_once():
                time.sleep(0.05)
        world.close()


def as_project(ctx: Context) -> Context:
    """Return a context as the engine gives it to a project that knows the region."""
    assert Region.current is not None
    settings = Settings(**Region.current.settings())
    return replace(ctx, project_id=PROJECT, catalog=catalog_of(settings, PROJECT))


@pytest.fixture(scope="module")
def region(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Region]:
    """Run another region for a module's tests."""
    with Region(new_database(), tmp_path_factory.mktemp("region")) as running:
        Region.current = running
        yield running
    Region.current = None
