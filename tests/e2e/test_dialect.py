"""A third-party package, built and installed, extends the template language of a running server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.running import Up, environment, eventually

PACKAGE = Path(__file__).parents[1] / "plugins" / "dialect"
BROKEN = """\
[orchestrator.template_formats]
broken = broken_dialect:FORMATS

[orchestrator.functions]
broken_greeting = broken_dialect:GREETING

[orchestrator.constraints]
broken.colour = broken_dialect:colour
"""
TEMPLATE = """\
acme_template_version: "1"
parameters:
  paint:
    type: string
    default: red
    constraints:
      - custom_constraint: acme.colour
resources:
  sign:
    type: OS::Heat::Value
    properties:
      value: {shout: {text: {get_param: paint}, times: 2}}
outputs:
  sign:
    value: {get_attr: [sign, value]}
  slug:
    value: {acme_slug: [Corner Shop]}
"""


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return PYTHONPATH for the package, installed by pip, and for a second, broken package."""
    installed, broken = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("broken")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-deps")
    offline = ("--no-index", "--no-build-isolation", "--target", str(installed))
    subprocess.run([*pip, *offline, str(PACKAGE)], check=True)
    (broken / "broken_dialect.py").write_text("raise RuntimeError('not today')\n")
    info = broken / "broken_dialect-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: broken-dialect\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(BROKEN)
    return {"PYTHONPATH": os.pathsep.join([str(installed), str(broken)])}


@pytest.fixture(scope="module")
def up(paths: dict[str, str], start_up: Callable[..., Up], tmp_path_factory: pytest.TempPathFactory) -> Up:
    """A server with both packages installed."""
    return start_up(tmp_path_factory.mktemp("up") / "data", env=paths).wait_ready()


def post(up: Up, path: str, body: dict[str, Any]) -> httpx.Response:
    return httpx.post(f"{up.url}/v1/demo/{path}", json=body, timeout=20)


def show(up: Up, path: str) -> Any:
    return httpx.get(f"{up.url}/v1/demo/{path}", follow_redirects=True, timeout=20).json()


def refused(up: Up, template: str, **options: Any) -> dict[str, Any]:
    answer = post(up, "stacks", {"stack_name": "refused", "template": template, **options})
    assert answer.status_code == 400, answer.text
    error: dict[str, Any] = answer.json()["error"]
    return error


def test_without_the_package_its_format_is_unknown() -> None:
    program = (
        "from orchestrator.template.formats import find_format; "
        "print(find_format('acme_template_version', '1'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "None\n"


def test_a_stack_in_the_new_format_is_made_with_its_functions(up: Up) -> None:
    post(up, "stacks", {"stack_name": "sign", "template": TEMPLATE}).raise_for_status()
    assert eventually(lambda: up.status("sign") == "CREATE_COMPLETE")
    outputs = show(up, "stacks/sign")["stack"]["outputs"]
    assert {output["output_key"]: output["output_value"] for output in outputs} == {
        "sign": "RED!!",
        "slug": "corner-shop",
    }


def test_a_value_that_the_new_constraint_does_not_allow_is_refused_in_its_words(up: Up) -> None:
    error = refused(up, TEMPLATE, parameters={"paint": "pink"})
    reason = "Error validating value 'pink': available colours: blue, green, red"
    assert error["message"] == f"Parameter 'paint' is invalid: {reason}"
    assert error["errors"][0]["path"] == "parameters.paint"


def test_a_fault_in_a_call_of_the_new_function_has_its_place(up: Up) -> None:
    error = refused(up, TEMPLATE.replace("times:", "how_often:").replace("text:", "txt:"))
    (fault,) = error["errors"]
    assert fault["message"].endswith('"shout" should be: {shout: {text: <text>, times: <number>}}')
    assert (fault["path"], fault["line"]) == ("resources.sign.properties.value.shout", 12)


def test_the_new_format_is_listed_with_its_functions(up: Up) -> None:
    versions = show(up, "template_versions")["template_versions"]
    name = "acme_template_version.1"
    assert {"version": name, "type": "hot", "aliases": ["acme_template_version.one"]} in versions
    listed = show(up, f"template_versions/{name}/functions")["template_functions"]
    about = {item["functions"]: item["description"] for item in listed}
    assert about["shout"] == '``{shout: {text: hello, times: 2}}`` returns ``"HELLO!!"``.'
    assert {"acme_slug", "get_param", "yaql"} <= about.keys()


def test_hot_has_the_function_from_the_version_on_that_it_names(up: Up) -> None:
    def functions(version: str) -> set[str]:
        listed = show(up, f"template_versions/heat_template_version.{version}/functions")
        return {template_function["functions"] for template_function in listed["template_functions"]}

    assert "acme_slug" in functions("2016-10-14")
    assert "acme_slug" not in functions("2016-04-08")
    assert "shout" not in functions("2021-04-16")


def test_only_the_extensions_of_a_broken_package_are_refused(up: Up) -> None:
    unknown = TEMPLATE.replace("acme_template_version", "broken_template_version")
    assert "cannot be used" not in refused(up, unknown)["message"]
    assert refused(up, unknown)["errors"][0]["hint"].endswith("the server's log contains the reason: broken")
    calling = TEMPLATE.replace("{acme_slug: [Corner Shop]}", "{broken_greeting: [ada]}")
    assert 'The function "broken_greeting" is installed but not usable' in refused(up, calling)["message"]
    (logged,) = (
        line
        for line in (up.data_dir / "logs" / "api.log").read_text().splitlines()
        if "template_format_skipped" in line
    )
    assert "RuntimeError: not today" in logged
