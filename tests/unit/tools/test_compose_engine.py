"""The reasons why `make test-compose` cannot run."""

from __future__ import annotations

import re

import pytest

from qa.compose import engine

IMAGES = ["postgres:18", "python:3.11-slim", "valkey/valkey:9"]


def test_the_base_images_are_those_of_dockerfile_and_compose_file() -> None:
    assert engine.base_images() == IMAGES


def test_images_env_pins_every_base_image_by_digest() -> None:
    pinned = engine.pinned_images()
    assert all(re.fullmatch(r"\S+@sha256:[0-9a-f]{64}", image) for image in pinned)
    assert [image.startswith(tag) for image, tag in zip(pinned, IMAGES, strict=True)] == [True] * len(IMAGES)


@pytest.mark.parametrize(
    ("failing", "reason"),
    [
        ((), ""),
        (("docker version",), "no Docker engine answers (docker version)"),
        (("docker compose",), "the Docker client has no plugin compose (docker compose version)"),
        (("docker image inspect",), ""),
        (
            ("docker image inspect postgres", "docker pull --quiet postgres"),
            "the image postgres:18 does not exist on this machine and cannot be pulled",
        ),
    ],
)
def test_the_first_obstacle_is_the_reason(
    monkeypatch: pytest.MonkeyPatch, failing: tuple[str, ...], reason: str
) -> None:
    monkeypatch.setattr(engine.shutil, "which", lambda name: f"/bin/{name}")
    assert engine.obstacle(lambda *command: not " ".join(command).startswith(failing or ("-",))) == reason


def test_a_missing_client_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.shutil, "which", lambda _name: None)
    assert engine.obstacle() == "the program docker is not installed"
