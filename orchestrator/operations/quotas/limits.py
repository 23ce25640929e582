"""Limits per project: from the settings, unless the operator has set others for the project."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.config import DEFAULT_QUOTAS, Settings
from orchestrator.store.access import quotas
from orchestrator.store.connections.database import Database

Db = Connection[TupleRow]

UNLIMITED: Final = -1
CACHED_SECONDS: Final = 10.0  # delay until a changed limit of rates, sizes and streams takes effect
MAX_CACHED: Final = 10_000  # projects
STREAM_SHARE: Final = 2  # without a setting, a project has 1/STREAM_SHARE of the event streams of a process

QUOTAS: Final = (*DEFAULT_QUOTAS, "template_bytes")  # names
# Quotas without the value 0: settings with this value have another meaning, or no request would succeed.
POSITIVE: Final = frozenset({"event_streams", "requests_per_second", "signals_per_second", "template_bytes"})


def default(settings: Settings, name: str) -> float:
    """Return the limit of the settings, -1 for none."""
    value = settings.max_template_size if name == "template_bytes" else settings.quotas[name]
    if value or name not in POSITIVE:
        return value
    return max(1, settings.max_event_streams // STREAM_SHARE) if name == "event_streams" else UNLIMITED


def limit(db: Db, settings: Settings, project_id: str, name: str) -> int:
    """Return a limit of a project."""
    own = quotas.maximum(db, project_id, name)
    return int(default(settings, name)) if own is None else own


@dataclass(slots=True)
class CachedQuotas:
    """Limits that are checked with every request: read once in CACHED_SECONDS for each project."""

    database: Database
    settings: Settings
    _read: OrderedDict[str, tuple[float, Mapping[str, int]]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def limit(self, project_id: str, name: str) -> float:
        """Return a limit of a project, -1 for none."""
        own = self._own(project_id).get(name)
        return default(self.settings, name) if own is None else own

    def settings_of(self, project_id: str) -> Settings:
        """Return the settings with the project's own maximum size of a template, if it has one."""
        own = self._own(project_id).get("template_bytes")
        if own is None:
            return self.settings
        largest = self.settings.max_json_body_size if own == UNLIMITED else own
        return self.settings.model_copy(update={"max_template_size": largest})

    def _own(self, project_id: str) -> Mapping[str, int]:
        """Return the limits of a project that differ from the settings."""
        now = time.monotonic()
        with self._lock:
            until, own = self._read.get(project_id, (0.0, {}))
        if now < until:
            return own
        with self.database.borrow() as db:
            own = quotas.list_all(db, project_id)
        with self._lock:
            self._read[project_id] = (now + CACHED_SECONDS, own)
            self._read.move_to_end(project_id)
            if len(self._read) > MAX_CACHED:
                self._read.popitem(last=False)
        return own
