"""A third party's resource type, in its own package, installed from its wheel and from its sdist."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.running import Up, environment, eventually

PACKAGE = Path(__file__).parents[1] / "plugins" / "shelf"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The package's wheel and its sdist, built apart from the tree."""
    place = tmp_path_factory.mktemp("shelf")
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir", str(place), str(PACKAGE))
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {"wheel": next(place.glob("*.whl")), "sdist": next(place.glob("*.tar.gz"))}


@pytest.fixture(scope="module")
def python(installed: Path, built: dict[str, Path]) -> Path:
    """The interpreter of an environment with the orchestrator's wheel and the package's."""
    python = installed / "bin" / "python"
    install(python, built["wheel"])
    return python


def install(python: Path, package: Path, *options: str) -> None:
    pip = (sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "install")
    offline = ("-q", "--no-deps", "--no-index", "--no-build-isolation", *options)
    done = subprocess.run(
        [*pip, *offline, str(package)],
        env={**environment(), "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def said(python: Path, *arguments: str, cwd: Path, **env: str) -> str:
    done = subprocess.run(
        [str(python), *arguments],
        cwd=cwd,
        env={**environment(env), "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_own_tests_pass_the_contract_from_outside(python: Path, tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_box.py").write_text((PACKAGE / "tests" / "test_box.py").read_text())
    output = said(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests), cwd=tmp_path)
    assert " passed" in output
    assert "failed" not in output
    assert int(output.rsplit(" passed", 1)[0].split()[-1]) >= 25  # it has met the whole contract


def test_a_type_that_breaks_its_word_does_not_pass(python: Path, tmp_path: Path) -> None:
    text = (PACKAGE / "tests" / "test_box.py").read_text()
    broken = """

class Leaky(Box):
    def find(self, ctx, token):
        return None


class TestLeaky(TypeContract):
    @pytest.fixture
    def sample(self):
        return Sample("Acme::Box", {"litres": 20})

    @pytest.fixture
    def kind(self, sample):
        return Leaky()
"""
    (tmp_path / "test_leaky.py").write_text(text + broken)
    done = subprocess.run(
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "TestLeaky", str(tmp_path)],
        cwd=tmp_path,
        env={**environment(), "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    assert "test_find_returns_the_object_of_an_interrupted_create" in done.stdout


def test_from_its_sdist_it_is_found_as_well(installed: Path, built: dict[str, Path], tmp_path: Path) -> None:
    install(installed / "bin" / "python", built["sdist"], "--target", str(tmp_path / "other"))
    code = (
        "from orchestrator.resources.registry import load_registry; "
        "import inspect; print(inspect.getfile(type(load_registry()['Acme::Box'])))"
    )
    done = subprocess.run(
        [str(installed / "bin" / "python"), "-c", code],
        cwd=tmp_path,
        env={**environment(), "PYTHONPATH": str(tmp_path / "other")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout.strip()).is_relative_to(tmp_path / "other")


def test_it_is_used_end_to_end(python: Path, start_up: Callable[..., Up], tmp_path: Path) -> None:
    shelf = tmp_path / "boxes"
    shelf.mkdir()
    env = {"ACME_SHELF": str(shelf), "PYTHONPATH": ""}
    command = (str(python.with_name("orchestrator")),)
    up = start_up(Path("data"), command=command, env=env, cwd=tmp_path).wait_ready()

    def boxes() -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in shelf.glob("*.json")]

    def ask(method: str, path: str, **body: Any) -> httpx.Response:
        url = f"{up.url}/v1/demo/{path}"
        return httpx.request(method, url, json=body or None, timeout=20, follow_redirects=True)

    def template(**properties: Any) -> dict[str, Any]:
        box = {"type": "Acme::Box", "properties": {"litres": 20, **properties}}
        outputs = {"key": {"value": {"get_attr": ["box", "key"]}}}
        return {"heat_template_version": "2021-04-16", "resources": {"box": box}, "outputs": outputs}

    assert "Acme::Box" in ask("GET", "resource_types").json()["resource_types"]
    assert ask("GET", "resource_types/Acme::Box").json()["properties"]["litres"]["constraints"] == [
        {"range": {"min": 1, "max": 100}}
    ]
    refused = ask("POST", "stacks", stack_name="s", template=template(litres=60))
    assert refused.json()["error"]["message"].endswith("A box of more than 50 litres must be of wood.")
    ask("POST", "stacks", stack_name="s", template=template(label="a")).raise_for_status()
    assert eventually(lambda: up.status("s") == "CREATE_COMPLETE")
    (box,) = boxes()
    assert box["label"] == "a"
    (output,) = ask("GET", "stacks/s").json()["stack"]["outputs"]
    assert output["output_value"] == box["key"]
    (stack_id,) = [item["id"] for item in ask("GET", "stacks").json()["stacks"]]
    place = f"stacks/s/{stack_id}"
    ask("PUT", place, template=template(label="b")).raise_for_status()
    assert eventually(lambda: up.status("s") == "UPDATE_COMPLETE")
    assert [item["label"] for item in boxes()] == ["b"]
    ask("POST", f"{place}/actions", suspend=None).raise_for_status()
    assert eventually(lambda: up.status("s") == "SUSPEND_COMPLETE")
    assert [item["closed"] for item in boxes()] == [True]
    ask("DELETE", place).raise_for_status()
    assert eventually(lambda: up.status("s") == "" or up.status("s") == "DELETE_COMPLETE")
    assert boxes() == []
    assert up.stop() == 0
