"""A RabbitMQ of the tests on loopback, and senders of notifications like OpenStack's services."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import amqp

from tests.e2e.running import free_ports

SERVER: Final = "/usr/lib/rabbitmq/bin/rabbitmq-server"
EPMD: Final = shutil.which("epmd")
START_SECONDS: Final = 120.0


def is_installed() -> bool:
    """Whether a broker can be started."""
    return EPMD is not None and Path(SERVER).exists()


@contextlib.contextmanager
def broker() -> Iterator[str]:
    """Keep a broker running; yield its URL for oslo.messaging."""
    assert EPMD is not None
    with tempfile.TemporaryDirectory(prefix="orchestrator-broker-") as name, contextlib.ExitStack() as ends:
        folder, port = Path(name), free_ports(3)
        (folder / "plugins").write_text("[].")
        (folder / "broker.conf").write_text(
            f"listeners.tcp.default = 127.0.0.1:{port}\nlog.console = false\n"
        )
        names = {
            "NODENAME": f"test{port}@localhost",
            "NODE_PORT": str(port),
            "NODE_IP_ADDRESS": "127.0.0.1",
            "DIST_PORT": str(port + 1),
            "CONF_ENV_FILE": "/dev/null",
            "MNESIA_BASE": str(folder / "data"),
            "LOG_BASE": str(folder),
            "CONFIG_FILE": str(folder / "broker"),
            "ADVANCED_CONFIG_FILE": str(folder / "none"),
            "ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        }
        environment = {f"RABBITMQ_{key}": value for key, value in names.items()}
        environment |= {"HOME": name, "ERL_EPMD_PORT": str(port + 2), "ERL_EPMD_ADDRESS": "127.0.0.1"}
        environment |= {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        ends.enter_context(_running([EPMD, "-port", str(port + 2), "-address", "127.0.0.1"], environment))
        ends.enter_context(_running([SERVER], environment))
        _await_port(port)
        yield f"rabbit://guest:guest@127.0.0.1:{port}/"


@contextlib.contextmanager
def _running(command: list[str], environment: dict[str, str]) -> Iterator[None]:
    quiet = subprocess.DEVNULL
    child = subprocess.Popen(
        command, env=environment, stdout=quiet, stderr=quiet, stdin=quiet, start_new_session=True
    )
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # its data are not needed any more
        child.wait()


def _await_port(port: int) -> None:
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
        except OSError:
            assert time.monotonic() < until, "the broker does not start"
            time.sleep(0.2)
        else:
            return


class Sender:
    """Sends notifications as a service does with `driver = messagingv2`."""

    def __init__(self, url: str, exchange: str) -> None:
        place = urlsplit(url)
        self._connection = amqp.Connection(
            f"{place.hostname}:{place.port}", userid=place.username, password=place.password, virtual_host="/"
        )
        self._connection.connect()
        self._channel, self._exchange = self._connection.channel(), exchange
        self._channel.exchange_declare(exchange, "topic", durable=False, auto_delete=False)

    def send(self, event: str, topic: str = "notifications", **payload: Any) -> None:
        """Send a notification."""
        content = {"event_type": event, "publisher_id": "host", "priority": "INFO", "payload": payload}
        identity = {
            "message_id": str(uuid.uuid4()),
            "_unique_id": uuid.uuid4().hex,
            "timestamp": "2026-01-01",
        }
        text = json.dumps({"oslo.version": "2.0", "oslo.message": json.dumps(content | identity)})
        body = amqp.Message(text, content_type="application/json", content_encoding="utf-8")
        self._channel.basic_publish(body, exchange=self._exchange, routing_key=f"{topic}.info")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
