"""Ends a worker at its changing requests to the cloud. Python imports this at the start of a process.

`ORCHESTRATOR_TEST_DEATHS` names a directory. While its file `moment` holds `before`, `during` or `after`, the
process kills itself at that moment of each request that was not struck yet: a request struck once leaves a
file, and is carried out when it is repeated. Requests that run at the same time share a death.
"""

from __future__ import annotations

import hashlib
import importlib.abc
import importlib.machinery
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

VARIABLE: Final = "ORCHESTRATOR_TEST_DEATHS"
MODULE: Final = "orchestrator.clients.openstack.session.session_transport"
SHARED_SECONDS: Final = {"before": 0.7, "during": 0.15, "after": 0.7}  # until the process ends


def key_of(request: Any) -> str:
    """Return what identifies a request when it is repeated."""
    body: Any = request.body if isinstance(request.body, dict) else {}
    inner = next((value for value in body.values() if isinstance(value, dict)), {})
    name = inner.get("name") or inner.get("port_range_min") or ""
    return f"{request.method} {request.path} {sorted(body)} {name}"


def strike(directory: Path, request: Any) -> str:
    """Return the moment at which the process must end, "" if it must not. A request is struck once."""
    try:
        moment = (directory / "moment").read_text()
        (directory / hashlib.sha256(key_of(request).encode()).hexdigest()).touch(exist_ok=False)
    except OSError:
        return ""
    with (directory / "struck").open("a") as file:
        file.write(f"{moment} {key_of(request)}\n")
    return moment


def die_soon(moment: str) -> None:
    """End the process in a moment."""
    end = threading.Timer(SHARED_SECONDS[moment], os.kill, (os.getpid(), signal.SIGKILL))
    end.daemon = True
    end.start()


def mortal(send: Callable[..., Any], directory: Path) -> Callable[..., Any]:
    """Return the method of the transport, which ends the process."""

    def mortal_send(transport: Any, request: Any, seconds: float) -> Any:
        moment = strike(directory, request) if request.changes else ""
        if moment:
            if moment != "after":
                die_soon(moment)
            if moment == "before":
                threading.Event().wait()
        answer = send(transport, request, seconds)
        if moment:
            if moment == "after":
                die_soon(moment)
            threading.Event().wait()
        return answer

    return mortal_send


class Finder(importlib.abc.MetaPathFinder):
    """Finds the module of the transport, and changes it after its import."""

    def __init__(self, directory: Path) -> None:
        """Find nothing yet."""
        self._directory = directory

    def find_spec(
        self, name: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the specification of the module."""
        if name != MODULE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        assert spec is not None
        assert spec.loader is not None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            transport = vars(module)["SessionTransport"]
            transport.send = mortal(transport.send, self._directory)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if given := os.environ.get(VARIABLE):
    sys.meta_path.insert(0, Finder(Path(given)))
