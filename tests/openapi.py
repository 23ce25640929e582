"""The application's description, made without servers; run as a module it renews `docs/openapi.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import orjson
from flask import Flask

from api.app import operations
from api.dependencies import Dependencies
from api.routes import assemble
from orchestrator.config import Settings
from orchestrator.resources.registry import load_registry
from orchestrator.security.encryption import Cipher, new_key
from orchestrator.store.connections.database import Database

KEPT = Path(__file__).resolve().parents[1] / "docs" / "openapi.json"


def application() -> Flask:
    """Return the application with all routes and nothing behind them."""
    nobody = cast(Database, None)
    return assemble(
        Dependencies(
            Settings(auth="none"),
            nobody,
            Cipher([new_key()]),
            load_registry(),
            operations(),
            lambda _messages: None,
        )
    )


def described(app: Flask) -> dict[str, Any]:
    """Return the description that the application serves."""
    answer = app.test_client().get("/openapi.json")
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.get_json()
    return document


def written(document: dict[str, Any]) -> bytes:
    """Return the document in its stored form, whose diffs show the changes."""
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


if __name__ == "__main__":
    KEPT.write_bytes(written(described(application())))
