"""Whether `make test-compose` can run on this machine: a Docker engine, Compose, and the base images."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
PULL_SECONDS = 300.0
IMAGE = re.compile(r"^\s*image: \$\{\w+_IMAGE:-(\S+)\}|^ARG \w+_IMAGE=(\S+)", re.MULTILINE)

Run = Callable[..., bool]  # with the words of a command: whether it succeeds


def obstacle(run: Run | None = None) -> str:
    """Return the reason why the images cannot be built and run here, "" if they can."""
    run = run or succeeds
    if shutil.which("docker") is None:
        return "the program docker is not installed"
    if not run("docker", "version"):
        return "no Docker engine answers (docker version)"
    if not run("docker", "compose", "version"):
        return "the Docker client has no plugin compose (docker compose version)"
    for image in base_images():
        if not run("docker", "image", "inspect", image) and not run("docker", "pull", "--quiet", image):
            return f"the image {image} does not exist on this machine and cannot be pulled"
    return ""


def base_images() -> list[str]:
    """Return the base images that the Dockerfile and docker-compose.yml name by tag."""
    text = "\n".join((ROOT / name).read_text() for name in ("Dockerfile", "docker-compose.yml"))
    return sorted({compose or docker for compose, docker in IMAGE.findall(text)})


def pinned_images() -> list[str]:
    """Return the base images of images.env, with their digests."""
    lines = (ROOT / "images.env").read_text().splitlines()
    return sorted(line.partition("=")[2] for line in lines if line and not line.startswith("#"))


def succeeds(*command: str) -> bool:
    """Run a command; return whether it succeeds within PULL_SECONDS."""
    try:
        return subprocess.run(command, capture_output=True, timeout=PULL_SECONDS, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
