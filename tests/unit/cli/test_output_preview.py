"""`--preview` of `stack create` and `stack update`: their requests, output and exit status."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from orchestrator.cli.main import main
from orchestrator.cli.output import preview
from tests.unit.cli.stub import Stub, serving

TEMPLATE = "heat_template_version: 2018-08-31\nresources:\n  a: {type: OS::Heat::None}\n"
Run = Callable[..., Result]


@pytest.fixture
def stub() -> Iterator[Stub]:
    with serving() as stub:
        yield stub


@pytest.fixture
def run(stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line in an empty folder that contains a template."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORCHESTRATOR_URL", stub.url)
    for name in ("ORCHESTRATOR_PROJECT", "ORCHESTRATOR_TOKEN", "ORCHESTRATOR_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    Path("t.yaml").write_text(TEMPLATE)
    return lambda *arguments: CliRunner().invoke(main, [str(a) for a in arguments])


def change(name: str, because: str = "", *, certain: bool = True, **changed: Any) -> dict[str, Any]:
    return {
        "resource_name": name,
        "resource_type": "OS::Heat::TestResource",
        "because": because,
        "certain": certain,
        "changed_properties": changed,
        "unknown_properties": [],
    }


CHANGES = {
    "unchanged": [{"resource_name": "same", "resource_type": "OS::Heat::None"}],
    "added": [change("fresh")],
    "updated": [
        change("web", "size changes", size=["s", "m"]),
        {
            **change("db", "host may change (web is replaced)", certain=False, host=["web-1", None]),
            "unknown_properties": ["host"],
        },
    ],
    "replaced": [
        change("net", "cidr cannot be changed in place", cidr=["10.0.0.0/8", None], secret=["******"] * 2)
    ],
    "deleted": [change("old")],
}
SHOWN = """\
  + fresh  OS::Heat::TestResource  added
  ~ db  OS::Heat::TestResource  may be updated: host may change (web is replaced)
      host: "web-1" → (not known yet)
  ~ web  OS::Heat::TestResource  updated: size changes
      size: "s" → "m"
-/+ net  OS::Heat::TestResource  replaced: cidr cannot be changed in place
      cidr: "10.0.0.0/8" → (nothing)
      secret: "******" → "******"
  - old  OS::Heat::TestResource  deleted
1 to add, 2 to update, 1 to replace, 1 to delete; 1 unchanged.
"""


def test_a_preview_of_an_update_is_a_plan_to_read(stub: Stub, run: Run) -> None:
    shop = stub.add("shop", status="CREATE_COMPLETE", changes=CHANGES)
    result = run("stack", "update", "-t", "t.yaml", "shop", "--preview", "-P", "a=1", "--converge")
    assert (result.exit_code, result.output) == (0, SHOWN)
    method, path, query, _, body = stub.requests[-1]
    assert (method, path) == ("PUT", f"/v1/demo/stacks/shop/{shop.id}/preview")
    assert query == {"show_nested": ["true"]}
    assert body == {"template": TEMPLATE, "parameters": {"a": "1"}, "converge": True}
    assert shop.status == "CREATE_COMPLETE"


def test_a_preview_says_what_the_environment_forbids(stub: Stub, run: Run) -> None:
    replaced = {**change("net", "cidr cannot be changed in place"), "restricted_action": "replace"}
    stub.add("shop", changes={**{key: [] for key in CHANGES}, "replaced": [replaced]})
    result = run("stack", "update", "-t", "t.yaml", "shop", "--preview")
    assert result.output == (
        "-/+ net  OS::Heat::TestResource  replaced: cidr cannot be changed in place\n"
        "      refused: replace is restricted for resource, the update would fail\n"
        "1 to replace; 0 unchanged.\n"
        "The update would fail: 1 refused.\n"
    )


def test_a_preview_of_a_patch_asks_for_one(stub: Stub, run: Run) -> None:
    changes = {**{key: [] for key in CHANGES}, "unchanged": CHANGES["unchanged"]}
    stub.add("shop", changes=changes, parameters={"a": "0"})
    result = run("stack", "update", "--existing", "shop", "--preview", "-P", "a=1")
    assert (result.exit_code, result.output) == (0, "No changes: 1 unchanged.\n")
    assert stub.requests[-1][0] == "PATCH"
    assert stub.requests[-1][4] == {"parameters": {"a": "1"}}


def test_a_preview_as_json_is_what_the_server_said(stub: Stub, run: Run) -> None:
    stub.add("shop", changes=CHANGES)
    result = run("stack", "update", "-t", "t.yaml", "shop", "--preview", "--json")
    assert json.loads(result.output) == CHANGES


def test_a_preview_of_a_create_shows_what_would_be_made(stub: Stub, run: Run) -> None:
    properties = {"value": "v", "seconds": 0, "nothing": None, "word": "******"}
    stub.preview = {"resources": [{**change("a"), "properties": properties}]}
    result = run("stack", "create", "-t", "t.yaml", "shop", "--preview")
    assert (result.exit_code, result.output) == (
        0,
        "  + a  OS::Heat::TestResource\n"
        '      value = "v"\n      seconds = 0\n      word = "******"\n1 to add.\n',
    )
    assert stub.requests_of("POST") == ["/v1/demo/stacks/preview"]
    assert stub.stacks == []
    assert (
        json.loads(run("stack", "create", "-t", "t.yaml", "shop", "--preview", "--json").output)
        == stub.preview
    )


@pytest.mark.parametrize("command", ["create", "update"])
def test_nothing_is_waited_for(stub: Stub, run: Run, command: str) -> None:
    result = run("stack", command, "-t", "t.yaml", "shop", "--preview", "--wait")
    assert result.exit_code == 1
    assert "--wait has no effect" in result.output
    assert stub.requests == []


def test_a_refusal_is_explained_as_that_of_the_update(stub: Stub, run: Run) -> None:
    stub.refusal = 400, {"error": {"message": "no such thing", "type": "StackValidationFailed"}}
    result = run("stack", "create", "-t", "t.yaml", "shop", "--preview")
    assert result.exit_code == 1
    assert "no such thing" in result.output


def shown(before: Any, after: Any, *, terminal: bool = False) -> str:
    out = Console(
        file=StringIO(), force_terminal=terminal, width=200, color_system="standard" if terminal else None
    )
    changes: dict[str, list[Any]] = {
        **{key: [] for key in CHANGES},
        "updated": [change("a", p=[before, after])],
    }
    preview.show_update(out, changes)
    text: str = out.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_long_values_are_told_by_the_lines_that_differ() -> None:
    script = "".join(f"line {number}\n" for number in range(30))
    lines = shown(script, script.replace("line 15\n", "other\n")).splitlines()
    assert lines[1:9] == [
        "      p:",
        "        @@ -14,5 +14,5 @@",
        "         line 13",
        "         line 14",
        "        -line 15",
        "        +other",
        "         line 16",
        "         line 17",
    ]
    rules = [{"port": number, "protocol": "tcp"} for number in range(9)]
    text = shown(rules, [*rules, {"port": 99, "protocol": "udp"}])
    assert "        +- port: 99\n        +  protocol: udp\n" in text
    many = shown("a\n" * 200, "b\n" * 200)
    assert "… 361 more lines" in many


def test_colours_are_for_terminals_and_nothing_moves_the_cursor() -> None:
    assert "\x1b" not in shown("a\x1b[2J", "b")
    assert "\x1b[31m" in shown("a", "b", terminal=True)
    assert "\x1b[2J" not in shown("a\x1b[2J", "b\x1b[2J\n\x1b[2J", terminal=True)


def test_what_is_in_nested_stacks_is_told_under_their_names() -> None:
    out = Console(file=StringIO(), width=200)
    inner = {
        "resource_name": "first",
        "resource_type": "OS::Heat::None",
        "stack_name": "shop-db",
        "parent_resource": "db",
        "properties": {},
    }
    outer = {**inner, "resource_name": "web", "stack_name": "shop"}
    del outer["parent_resource"]
    preview.show_create(out, {"resources": [[inner], outer]})
    changes = {turn: [] for turn in ("unchanged", "updated", "replaced", "added", "deleted")}
    preview.show_update(out, {**changes, "updated": [inner, outer]})
    reported = [line.strip().split("  ")[0] for line in out.file.getvalue().splitlines()]
    assert reported == [
        "+ shop-db.first",
        "+ web",
        "2 to add.",
        "~ web",
        "~ shop-db.first",
        "2 to update; 0 unchanged.",
    ]
