"""`simulated-openstack serve`, as a process."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cloud_client import signed_in

COMMAND = (sys.executable, "-m", "simulated_openstack")


@contextmanager
def serving(*options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Run the command; yield its process and the variables that it prints."""
    command = [*COMMAND, "serve", "--delays", "none", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert "simulated cloud: http://127.0.0.1:" in process.stdout.readline()
            words = shlex.split(process.stdout.readline())
            yield process, dict(word.split("=", 1) for word in words if "=" in word)
        finally:
            process.kill()


def test_a_client_uses_the_printed_variables_until_sigterm() -> None:
    with serving() as (process, variables):
        client, urls = signed_in(variables)
        with client:
            images = client.get(f"{urls['image']}/v2/images").json()["images"]
        assert {image["name"] for image in images} == {"cirros", "fedora"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_a_file_scripts_failures_of_a_running_cloud(tmp_path: Path) -> None:
    faults = tmp_path / "faults.json"
    with serving("--faults", str(faults)) as (_, variables):
        client, urls = signed_in(variables)
        with client:
            url = f"{urls['network']}/v2.0/networks"
            assert client.get(url).status_code == 200
            rule = {"service": "neutron", "method": "GET", "path": "/networks$", "status": 503, "times": 1}
            faults.write_text(json.dumps({"api": [rule]}))
            assert client.get(url).status_code == 503
            assert client.get(url).status_code == 200


def test_a_killed_cloud_continues_with_its_file(tmp_path: Path) -> None:
    state = ("--state", str(tmp_path / "objects"))
    with serving(*state) as (process, variables):
        client, urls = signed_in(variables)
        with client:
            body = {"network": {"name": "kept"}}
            client.post(f"{urls['network']}/v2.0/networks", json=body).raise_for_status()
        process.kill()
        process.wait(20)
    with serving(*state) as (_, variables):
        client, urls = signed_in(variables)
        with client:
            networks = client.get(f"{urls['network']}/v2.0/networks").json()["networks"]
    assert "kept" in {network["name"] for network in networks}


def test_the_password_of_a_file_is_not_printed(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("mine\n")
    with serving("--password-file", str(file)) as (_, variables):
        assert "OS_PASSWORD" not in variables
        client, _ = signed_in(variables | {"OS_PASSWORD": "mine"})
        client.close()


def test_a_port_in_use_is_reported_in_a_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = str(used.getsockname()[1])
        command = [*COMMAND, "serve", "--port", port]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("simulated-openstack: ")
    assert port in done.stderr
    assert done.stderr.count("\n") == 1
