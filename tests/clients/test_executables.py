"""The stock clients as they are installed: each command its own process."""

from __future__ import annotations

import select
import signal
import subprocess
from pathlib import Path

from tests.clients.stock import Driver, Openstack, settings_of_nobody


def test_events_are_followed_until_control_c(driver: Driver, openstack: Openstack, template: Path) -> None:
    openstack("stack create", "-t", template, "--wait", "--poll", "1", "one")
    program = driver.place / "bin" / "openstack"
    who = {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": openstack.endpoint, "PYTHONUNBUFFERED": "1"}
    following = subprocess.Popen(
        [str(program), "stack", "event", "list", "--follow", "--nested-depth", "1", "one"],
        env={**settings_of_nobody(driver.home), **who},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert following.stdout is not None
    try:
        lines = [following.stdout.readline() for _ in range(6)]
        assert lines[-1].endswith("[one]: CREATE_COMPLETE  Stack CREATE completed successfully\n")
        openstack("stack check", "--wait", "one")
        readable, _, _ = select.select([following.stdout], [], [], 60)
        assert readable
        assert "[one]: CHECK_IN_PROGRESS  Stack CHECK started" in following.stdout.readline()
    finally:
        following.send_signal(signal.SIGINT)
        following.communicate(timeout=30)
    assert following.returncode == 0
