"""Faults: scripted and random failures, in the JSON of the fault injector of the real control plane.

    {"spawn": {"match": "^web", "error": "text", "times": 2, "delay": 5},
     "api": [{"service": "neutron", "method": "POST", "path": "^/v2.0/networks", "status": 503,
              "headers": {"Retry-After": "1"}, "times": 1},
             {"service": "nova", "path": "/servers$", "drop": true, "after": true}],
     "seed": 7}

A rule of `api` may also have `"probability": 0.1`; `seed` makes a run repeatable. A new version of
the file restarts the counting of `times`.
"""

from __future__ import annotations

import os
import random
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from simulated_openstack.json_types import JsonObject


@dataclass(frozen=True)
class ApiFault:
    """The effect on a request."""

    delay: float = 0.0  # seconds before everything else
    status: int | None = None  # the answer, in place of the service's
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False  # close the connection without an answer
    after: bool = False  # the service carries out the request first
    truncate: float | None = None  # share of a list that is answered, without a link to the rest

    @property
    def replaces_answer(self) -> bool:
        """Whether the service's answer is lost."""
        return self.drop or self.status is not None


@dataclass(frozen=True)
class ActionFault:
    """The effect on an action of the hypervisor, the network or the storage."""

    error: str | None = None
    delay: float = 0.0


class Faults:
    """The current faults. `path` is read again whenever it changes."""

    def __init__(self, path: Path | None = None) -> None:
        """Start without faults, or with those of the file."""
        self._path, self._version = path, -1
        self._rules: JsonObject = {}
        self._left: dict[str, int] = {}
        self._random = random.Random()  # noqa: S311 - no secrets

    def set(self, rules: JsonObject) -> None:
        """Replace all faults."""
        self._rules, self._left = rules, {}
        if "seed" in rules:
            self._random.seed(rules["seed"])

    def api(self, service: str, method: str, path: str) -> ApiFault | None:
        """Return the fault of a request, or None."""
        self._read()
        for number, rule in enumerate(self._rules.get("api", ())):
            if (
                rule.get("service", service) == service
                and rule.get("method", method) == method
                and re.search(rule.get("path", ""), path)
                and self._random.random() < rule.get("probability", 1.0)
                and self._take(f"api{number}", rule)
            ):
                return ApiFault(
                    delay=rule.get("delay", 0.0),
                    status=rule.get("status"),
                    headers={str(k): str(v) for k, v in rule.get("headers", {}).items()},
                    drop=bool(rule.get("drop")),
                    after=bool(rule.get("after")),
                    truncate=rule.get("truncate"),
                )
        return None

    def action(self, name: str, target: str | None) -> ActionFault:
        """Return the fault of an action (`spawn`, `destroy`, `volume_create` …) on a named object."""
        self._read()
        rule: Any = self._rules.get(name)
        if not rule or not re.search(rule.get("match", ""), target or "") or not self._take(name, rule):
            return ActionFault()
        return ActionFault(rule.get("error"), rule.get("delay", 0.0))

    def _take(self, key: str, rule: JsonObject) -> bool:
        """Count a use of a rule; return whether any was left."""
        left = self._left.setdefault(key, rule.get("times", -1))
        if left == 0:
            return False
        self._left[key] = left - 1 if left > 0 else left
        return True

    def _read(self) -> None:
        if self._path is None:
            return
        try:
            with self._path.open("rb") as file:
                version = os.fstat(file.fileno()).st_mtime_ns
                if version == self._version:
                    return
                rules = orjson.loads(file.read() or b"{}")
        except (OSError, ValueError):
            rules, version = {}, -1
        if version != self._version or rules != self._rules:
            self.set(rules)
        self._version = version
