"""Without authentication no other host reaches the API, regardless of the socket; and forged headers of
proxies have no effect.
"""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.config import Settings
from orchestrator.embedded.process import Process
from orchestrator.errors import Misconfigured
from orchestrator.security.bind_address import require_safe_sockets
from orchestrator.security.encryption import new_key
from tests.e2e.running import environment, eventually, free_port
from tests.fork_server import forked
from tests.hostile.local_api import Served, open_api, serving  # noqa: F401 - fixtures
from tests.hostile.routes import Route
from tests.integration.served_api import HEALTH, answer, received, status

APP = "api.app:create_app()"
PATIENCE_SECONDS = 180  # for the start of a server, on a loaded machine
WORKERS = ("api.serving.gunicorn_worker.Worker", "gthread", "sync")
LIST = b"GET /v1/demo/stacks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"


@pytest.fixture
def env(postgres_url: str, broker_url: str) -> dict[str, str]:
    return environment(
        {
            "ORCHESTRATOR_AUTH": "none",
            "ORCHESTRATOR_DATABASE_URL": postgres_url,
            "ORCHESTRATOR_BROKER_URL": broker_url,
            "ORCHESTRATOR_ENCRYPTION_KEYS": new_key(),
        }
    )


def gunicorn(*options: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "gunicorn", "--no-control-socket", "-w", "1", *options, APP)


def started(env: dict[str, str], log: Path, *options: str) -> Process:
    """Start the API behind gunicorn."""
    return forked("gunicorn", *gunicorn(*options)[3:], env=env, log=log)


@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("address", ["0.0.0.0", "[::]"])
def test_a_socket_of_all_interfaces_is_not_served(
    env: dict[str, str], worker: str, address: str, tmp_path: Path
) -> None:
    process = started(env, tmp_path / "log", "-k", worker, "-b", f"{address}:{free_port()}")
    assert process.wait(PATIENCE_SECONDS)
    assert process.returncode != 0
    assert "refusing to serve a socket bound to" in (tmp_path / "log").read_text()


def test_an_inherited_socket_of_all_interfaces_is_not_served(env: dict[str, str]) -> None:
    with socket.create_server(("0.0.0.0", 0)) as listener:
        command = gunicorn("-k", "gthread", "-b", f"fd://{listener.fileno()}")
        done = subprocess.run(
            command,
            env=env,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
            pass_fds=[listener.fileno()],
        )
    assert done.returncode != 0
    assert "refusing to serve a socket bound to 0.0.0.0" in done.stderr


def test_a_missing_mode_is_an_error_except_for_up(env: dict[str, str]) -> None:
    unset = {name: value for name, value in env.items() if name != "ORCHESTRATOR_AUTH"}
    commands = (
        gunicorn("-k", "gthread", "-b", f"127.0.0.1:{free_port()}"),
        (sys.executable, "-m", "orchestrator.cli.main", "api", "--port", str(free_port())),
    )
    for command in commands:
        done = subprocess.run(
            command, env=unset, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
        assert done.returncode != 0
        assert "ORCHESTRATOR_AUTH is not set: set it to token" in done.stderr


@pytest.mark.parametrize("worker", WORKERS)
def test_a_connection_of_another_address_is_rejected(
    env: dict[str, str], worker: str, tmp_path: Path
) -> None:
    """The application is loaded before its socket is bound, so that only the peer shows the mistake."""
    port, own = free_port(), _own_address()
    options = ("-k", worker, "--preload", "-b", f"0.0.0.0:{port}", "--threads", "2")
    process = started(env, tmp_path / "log", *options)
    try:
        eventually(lambda: status(answer(port, HEALTH)) == 200, PATIENCE_SECONDS)
        forged = (b"", b"X-Forwarded-For: 127.0.0.1\r\n", b"Forwarded: for=127.0.0.1\r\n")
        for headers in forged:
            with socket.create_connection((own, port), timeout=20) as connection:
                connection.sendall(LIST + headers + b"\r\n")
                assert status(received(connection)) == 403, headers
        assert status(answer(port, LIST + b"X-Forwarded-For: 192.0.2.7\r\n\r\n")) == 403
        assert status(answer(port, LIST + b"Forwarded: for=192.0.2.7\r\n\r\n")) == 403
        assert status(answer(port, LIST + b"\r\n")) == 200
        forged_prefix = b"SCRIPT_NAME: /v1\r\nX-Forwarded-Proto: https\r\n\r\n"
        version = answer(port, b"GET /v1/demo HTTP/1.1\r\nHost: localhost\r\n" + forged_prefix)
        assert b'"http://localhost/v1/"' in version
    finally:
        process.stop()


def test_the_proxy_protocol_changes_no_peer(env: dict[str, str], tmp_path: Path) -> None:
    port, own = free_port(), _own_address()
    options = ("-k", "gthread", "--preload", "--proxy-protocol", "--proxy-allow-from", "*")
    process = started(env, tmp_path / "log", *options, "-b", f"0.0.0.0:{port}")
    local = b"PROXY TCP4 127.0.0.1 127.0.0.1 4000 80\r\n"
    try:
        eventually(lambda: status(answer(port, local + HEALTH)) == 200, PATIENCE_SECONDS)
        with socket.create_connection((own, port), timeout=20) as connection:
            connection.sendall(local + LIST + b"\r\n")
            assert status(received(connection)) == 403
    finally:
        process.stop()


def test_a_unix_socket_is_rejected(env: dict[str, str], tmp_path: Path) -> None:
    """Its usual peer is a reverse proxy, whose clients are unknown."""
    path = tmp_path / "api.sock"
    process = started(env, tmp_path / "log", "-b", f"unix:{path}")
    try:

        def rejected() -> bool:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(20)
                connection.connect(str(path))
                connection.sendall(LIST + b"\r\n")
                return status(received(connection)) == 403

        def listens() -> bool:  # a bound socket exists before it accepts connections
            with socket.socket(socket.AF_UNIX) as connection:
                return connection.connect_ex(str(path)) == 0

        eventually(listens, PATIENCE_SECONDS)
        assert rejected()
    finally:
        process.stop()


def test_only_open_sockets_of_internet_families_are_checked() -> None:
    settings = Settings(auth="none")
    with socket.create_server(("127.0.0.1", 0)), socket.socket() as unbound:
        require_safe_sockets(settings)
        unbound.bind(("0.0.0.0", 0))  # does not listen
        require_safe_sockets(settings)
        before = len(list(Path("/proc/self/fd").iterdir()))
        unbound.listen()
        with pytest.raises(Misconfigured, match=r"bound to 0\.0\.0\.0"):
            require_safe_sockets(settings)
        require_safe_sockets(Settings(auth="token"))
        assert len(list(Path("/proc/self/fd").iterdir())) == before


FORGED = {
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Prefix": "/evil",
    "SCRIPT_NAME": "/v1",
}


def test_headers_of_proxies_have_no_effect_without_trust(open_api: Served) -> None:
    show = Route("", "GET", "/v1/demo/stacks/victim")
    location = f"http://localhost:{open_api.port}/v1/demo/stacks/victim/{open_api.places['stack_id']}"
    assert f"location: {location}\r\n" in open_api.send(show, dict(FORGED)).decode().replace("Loc", "loc")


@pytest.mark.parametrize("addresses", ["127.0.0.0/8", "192.0.2.0/24"])
def test_headers_of_proxies_count_if_the_peer_is_trusted(
    addresses: str,
    new_database: Callable[[], str],
    valkey_server: Any,
    broker_numbers: Iterator[int],
    tmp_path: Path,
) -> None:
    broker = valkey_server.url(next(broker_numbers))
    proxies = {"trusted_proxies": "1", "trusted_proxy_addresses": addresses}
    with serving("token", new_database, broker, tmp_path, **proxies) as api:
        show = Route("", "GET", "/v1/demo/stacks/victim")
        answered = api.send(show, dict(FORGED)).decode()
    own = f"http://localhost:{api.port}/v1"
    base = "https://evil.example/evil/v1" if addresses.startswith("127") else own
    assert f"ocation: {base}/demo/stacks/victim/{api.places['stack_id']}\r\n" in answered


def test_the_metrics_of_a_worker_are_not_read_by_a_rebound_name() -> None:
    from tasks.metrics_server import serve

    server = serve(Settings(metrics_address=f"127.0.0.1:{free_port()}"))
    assert server is not None
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/metrics"
        assert urllib.request.urlopen(url, timeout=10).status == 200
        rebound = urllib.request.Request(url, headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="421"):
            urllib.request.urlopen(rebound, timeout=10)
    finally:
        server.shutdown()
        server.server_close()


def _own_address() -> str:
    """Return an address of this machine other than loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has only the loopback address")
        address = str(probe.getsockname()[0])
    if address.startswith("127."):
        pytest.skip("this machine has only the loopback address")
    return address
