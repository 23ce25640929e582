"""A process that sends notifications at a rate, half of them about objects that do not exist.

    python -m tests.openstack.observation.flood SETTINGS

It is its own process: the flood is not part of the installation, and should cost the machine little.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from typing import Any

from tests.openstack.observation.broker import Sender

EVENT = "compute.instance.update"
TICK_SECONDS = 0.01
CONNECTED = "connected"


def start(**settings: Any) -> subprocess.Popen[str]:
    """Start to send: `url` of the broker, `topic`, `project`, `known` ids, `rate` per second, `seconds`.

    Return when the process is connected.
    """
    command = [sys.executable, "-m", "tests.openstack.observation.flood", json.dumps(settings)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == f"{CONNECTED}\n"
    return process


def main() -> None:
    """Send, then print the number of messages."""
    settings: dict[str, Any] = json.loads(sys.argv[1])
    known, rate, project = settings["known"], settings["rate"], settings["project"]
    sender, sent, began = Sender(settings["url"], "nova"), 0, time.monotonic()
    print(CONNECTED, flush=True)
    while (passed := time.monotonic() - began) < settings["seconds"]:
        while sent < passed * rate:
            id_ = known[sent // 2 % len(known)] if sent % 2 else str(uuid.uuid4())
            sender.send(EVENT, settings["topic"], tenant_id=project, instance_id=id_, state="active")
            sent += 1
        time.sleep(TICK_SECONDS)
    sender.close()
    print(sent)


if __name__ == "__main__":
    main()
