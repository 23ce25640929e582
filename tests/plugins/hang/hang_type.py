"""Resources whose verbs never release the interpreter lock: Test::Hang is local, Test::RemoteHang is not.

The property `where` names the verb: `create`, `observe`, or `validate`, which runs in the API. `how` is
`spin` (a backtracking pattern) or `sleep` (a deadlock in C).
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from orchestrator.resources.base import Context, Created, Fault, Observation, Property, ResourceType, Value

GATE = "TEST_HANG_GATE"  # a file that must exist for `observe` to hang


def hang(how: str) -> None:
    """Keep the interpreter lock for ever."""
    if how == "spin":
        re.fullmatch("(a+)+b", "a" * 100)
    mutex, libc = ctypes.create_string_buffer(64), ctypes.PyDLL(None)
    for _ in range(2):
        libc.pthread_mutex_lock(mutex)


class Hang(ResourceType):
    """A resource in our own row."""

    name = "Test::Hang"
    calls_out = False
    properties: ClassVar = {
        "where": Property("string", "The verb that hangs."),
        "how": Property("string", "How it hangs.", default="spin"),
        "value": Property("string", "A value.", default="", update_allowed=True),
    }
    attributes: ClassVar = {}

    def _pass(self, verb: str, props: Mapping[str, Value]) -> None:
        if props.get("where") == verb:
            hang(props["how"])

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Hang the API."""
        self._pass("validate", properties)
        return ()

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Hang the worker."""
        self._pass("create", props)
        return Created(ctx.physical_name)

    def find(self, ctx: Context, token: str) -> str | None:
        """Find nothing: it has hung before."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Hang the worker, after the creation and while the gate is open."""
        gate = Path(os.environ.get(GATE, "/nonexistent"))
        if ctx.action == "CHECK" and gate.exists():
            self._pass("observe", ctx.properties)
        return Observation(exists=ctx.action != "DELETE", ready=True)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Delete nothing."""


class RemoteHang(Hang):
    """A resource at a provider."""

    name = "Test::RemoteHang"
    calls_out = True
    service = "hang"
