"""Runs commands of the stock clients in a single process, in the clients' own environment.

The start of a client costs seconds: here it is paid once, not per command. The unmodified client runs, from
its argument vector to its exit status; only its pauses between polls are shorter. Reads a JSON object per
line from standard input, `{"run": "openstack" | "heat" | a module of this folder, "arguments": …}`, and
answers each with `{"status", "out", "err", "result"}`.
"""

from __future__ import annotations

import importlib
import io
import json
import logging
import os
import sys
import time
import traceback
from typing import Any

PAUSE = 0.1  # seconds at most between two polls


class Pauses:
    """The module `time`, with short pauses for polling clients."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    @staticmethod
    def sleep(seconds: float) -> None:
        time.sleep(min(seconds, PAUSE))


class Printed(io.TextIOBase):
    """Standard output or error of the running command, also for modules that captured it at import."""

    def __init__(self) -> None:
        self.text: list[str] = []

    def write(self, text: str) -> int:
        self.text.append(text)
        return len(text)

    def taken(self) -> str:
        """Return the text written since the last call."""
        text, self.text = "".join(self.text), []
        return text


def run(name: str, arguments: Any) -> tuple[int, Any]:
    """Run a client with its arguments, or the function `main` of a module here with its keywords."""
    if name == "openstack":
        from openstackclient import shell

        _clear_caches()
    elif name == "heat":
        from heatclient import shell
    else:
        return 0, importlib.import_module(name).main(**arguments)
    try:
        return shell.main(arguments) or 0, None
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1, None


def _clear_caches() -> None:
    """Reset the state of the shell, which is not designed for a second command: its clients, its log."""
    from openstackclient.common.clientmanager import ClientManager
    from osc_lib.clientmanager import ClientCache

    for kind in ClientManager.__mro__:
        for kept in vars(kind).values():
            if isinstance(kept, ClientCache):
                kept._handle = None
    logging.getLogger().handlers.clear()


def main() -> None:
    """Answer until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    sys.stdout, sys.stderr = out, err = Printed(), Printed()
    from heatclient.common import event_utils
    from heatclient.osc.v1 import event
    from openstack import utils as sdk_utils

    event_utils.time = event.time = sdk_utils.time = Pauses()
    sys.path.insert(0, os.path.dirname(__file__))  # noqa: PTH120
    for line in sys.stdin:
        requests = json.loads(line)
        result = None
        try:
            status, result = run(requests["run"], requests["arguments"])
        except Exception:
            status = 1
            traceback.print_exc()
        reported = {"status": status, "out": out.taken(), "err": err.taken(), "result": result}
        answers.write(json.dumps(reported, default=str) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
