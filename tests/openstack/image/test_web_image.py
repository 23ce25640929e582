"""Images that Glance downloads, on a cloud. Glance downloads from the ports 80 and 443 only."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from orchestrator.errors import ProviderError
from tests.openstack.conftest import DIRECTORY
from tests.openstack.driver import Driver

FORMATS = {"disk_format": "raw", "container_format": "bare"}
CONTENT = b"not really a disk" * 8


class _Images(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/image" else 404)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT)

    def log_message(self, format: str, *arguments: Any) -> None: ...


def _address() -> str:
    """Return an address of this machine that is not a loopback address: Glance refuses those."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing
        return str(probe.getsockname()[0])


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """Serve an image at `/image`."""
    try:
        address = _address()
        server = ThreadingHTTPServer((address, 80), _Images)
    except OSError as error:
        pytest.skip(f"no server on port 80: {error}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://{address}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_image_is_downloaded_changed_and_deleted(driver: Driver, site: str) -> None:
    given = {
        **FORMATS,
        "location": f"{site}/image",
        "name": driver.name(),
        "tags": ["b", "a"],
        "architecture": "x86_64",
        "extra_properties": {"hw_disk_bus": "virtio", "colour": "red"},
        "min_ram": 64,
    }
    image = driver.create("OS::Glance::WebImage", given)
    assert driver.drift(image) == {}
    assert driver.find(image) == [image]
    shown = driver.attributes(image, "show")["show"]
    assert (shown["status"], shown["colour"]) == ("active", "red")
    if DIRECTORY:  # the simulated cloud downloads nothing
        assert shown["size"] == len(CONTENT)
    driver.update(
        image,
        tags=["c"],
        architecture=None,
        os_distro="debian",
        protected=True,
        extra_properties={"hw_disk_bus": "scsi"},
    )
    assert driver.drift(image) == {}
    shown = driver.attributes(image, "show")["show"]
    assert (shown["tags"], shown["protected"], shown["hw_disk_bus"]) == (["c"], True, "scsi")
    assert {"architecture", "colour"}.isdisjoint(shown)
    resource = driver.resources[image]
    with pytest.raises(ProviderError, match="protected and cannot be deleted"):
        resource.type.delete(resource.ctx, image)
    driver.update(image, protected=False)


def test_an_image_is_shared_and_deactivated(driver: Driver, site: str) -> None:
    given = {**FORMATS, "location": f"{site}/image", "visibility": "shared", "members": ["a1", "a2"]}
    image = driver.create("OS::Glance::WebImage", {**given, "active": False})
    glance = driver.openstack.image
    assert sorted(glance.members(image)) == ["a1", "a2"]
    assert driver.attributes(image, "show")["show"]["status"] == "deactivated"
    driver.update(image, members=["a2", "a3"], active=True)
    assert sorted(glance.members(image)) == ["a2", "a3"]
    assert driver.attributes(image, "show")["show"]["status"] == "active"


@pytest.mark.skipif(not DIRECTORY, reason="the simulated cloud downloads nothing")
def test_a_failed_download_fails_the_image(driver: Driver, site: str) -> None:
    with pytest.raises(AssertionError, match="Went to status queued due to"):
        driver.create("OS::Glance::WebImage", {**FORMATS, "location": f"{site}/missing"})


def test_a_location_that_glance_refuses_fails_the_image(driver: Driver) -> None:
    with pytest.raises(ProviderError, match="does not pass filtering"):
        driver.create("OS::Glance::WebImage", {**FORMATS, "location": "http://127.0.0.1:1/image"})
