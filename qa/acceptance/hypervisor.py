"""The part of a hypervisor that Nova's fake one lacks: the upload of the images of servers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from orchestrator.errors import ProviderError
from qa.acceptance.background import working
from qa.acceptance.installation import Installation

POLL_SECONDS: Final = 1.0
FORMATS: Final = {"disk_format": "raw", "container_format": "bare"}
DISK: Final = b"the disk of a server"


@contextmanager
def images_uploaded(installation: Installation) -> Iterator[None]:
    """Upload the images that Nova creates of servers, during the block."""
    with working(partial(_upload_images, installation)):
        yield


def _upload_images(installation: Installation, over: threading.Event) -> None:
    glance, query = installation.administrator.image, {"status": "queued", "image_type": "snapshot"}
    while not over.wait(POLL_SECONDS):
        with suppress(ProviderError):  # the image was deleted, or the service gave no answer
            for image in glance.listed("/images", "images", query):
                glance.change_image(image["id"], FORMATS)
                glance.upload(f"/images/{image['id']}/file", DISK)
