"""Who runs what: every operation on a stack of ada, by every kind of caller.

The table below stands in docs/security.md; `test_the_table_of_the_documentation_is_this_table` compares
them.
"""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
import pytest

from orchestrator.operations.adoption import adopt_abandon
from orchestrator.operations.context import Body
from orchestrator.operations.observation import convergence
from orchestrator.operations.outputs.live_attributes import read_for_resource
from orchestrator.operations.preview.update import preview_update
from orchestrator.operations.stacks import create_delete
from orchestrator.store.stacks import resources
from tests.plugins.stand_in_keystone import StandIn, identity  # noqa: F401 - a fixture
from tests.scenarios.keystone.authority_world import ADA, BOB, ROOT, Acts, Stage, acts
from tests.scenarios.keystone.credential_world import keystone  # noqa: F401 - a fixture
from tests.scenarios.snapshots.snapshot_requests import restore, take

DOCUMENT: Final = Path(__file__).parents[3] / "docs/security.md"
CALLERS: Final = {"author": "ada", "member": "bob", "admin": "root", "gone": "bob"}
IDS: Final = {"ada": ADA, "bob": BOB, "root": ROOT}
GROUP: Final = {
    "type": "OS::Heat::AutoScalingGroup",
    "properties": {"min_size": 0, "max_size": 3, "desired_capacity": 0, "resource": acts()},
}
POLICY: Final = {
    "type": "OS::Heat::ScalingPolicy",
    "properties": {
        "adjustment_type": "change_in_capacity",
        "auto_scaling_group_id": {"get_resource": "g"},
        "scaling_adjustment": 1,
    },
}

Do = Callable[[Stage], None]


class Row(NamedTuple):
    """An operation: its name in the document, who runs it for each caller, the author afterwards, and the
    verb that tells.
    """

    name: str
    author: str  # of the content afterwards: the caller, or unchanged
    cells: tuple[str, str, str, str]  # by caller
    verb: str
    do: Do
    prepare: Do = lambda _: None


CALLER, AUTHOR = ("caller",) * 4, ("author",) * 3 + ("fails",)
OPERATION = ("author",) * 3 + ("caller",)
NOTHING = ("nothing",) * 4
HALT: Final = "cancel_without_rollback"


def template(resource: Any) -> dict[str, Any]:
    return {"heat_template_version": "2021-04-16", "resources": {"a": resource}}


def red(stage: Stage) -> None:
    """Let ada submit a second revision."""
    stage.world.update("s", {"a": acts("red")})
    stage.deliver()


def update(stage: Stage) -> None:
    stage.world.update("s", {"a": acts("green")})


def patch_content(stage: Stage) -> None:
    stage.world.patch("s", template=template(acts("green")))


def patch_settings(stage: Stage) -> None:
    stage.world.patch("s", timeout_mins=30, tags="x", disable_rollback=True, converge=True)


def fail(stage: Stage) -> None:
    """Submit content that fails and is rolled back."""
    Acts.refused.add("bad")
    stage.world.update("s", {"a": acts("red"), "b": acts("bad")}, disable_rollback=False)


def begin_update(stage: Stage) -> None:
    """Let ada submit a second revision, which is in progress."""
    stage.world.update("s", {"a": acts("red"), "b": {**acts("late"), "depends_on": "a"}})
    stage.world.deliver(2)


def snapshot(stage: Stage) -> None:
    take(stage.world)
    stage.deliver()
    red(stage)


def restore_snapshot(stage: Stage) -> None:
    [row] = stage.world.rows("SELECT uuid FROM snapshot")
    restore(stage.world, str(row.uuid))


def act(action: str) -> Do:
    return lambda stage: stage.world.act("s", action)


def done(action: str) -> Do:
    def run(stage: Stage) -> None:
        stage.world.act("s", action)
        stage.deliver()

    return run


def scalable(stage: Stage) -> None:
    stage.world.update("s", {"a": acts(), "g": GROUP, "p": POLICY})
    stage.deliver()


def fail_update(stage: Stage) -> None:
    """Let ada submit content that fails."""
    Acts.refused.add("bad")
    stage.world.update("s", {"a": acts(), "b": acts("bad")})
    stage.deliver()


def damage(stage: Stage) -> None:
    """Remove the object, and observe that."""
    stage.healer.discover()
    stage.healer.round()
    stage.healer.policy("heal")
    stage.healer.remove("a")
    stage.healer.round()
    stage.healer.heal()


def update_damage(stage: Stage) -> None:
    stage.healer.discover()
    stage.healer.round()
    stage.healer.policy("heal")
    stage.shelf.objects[stage.healer.id("a")]["label"] = "dirty"
    stage.healer.round()


def heal(stage: Stage) -> None:
    stage.healer.heal()


def approve(stage: Stage) -> None:
    stage.healer.db.execute(
        "UPDATE repair SET status = 'approved', decided_by = %s, decided_at = now()",
        (stage.world.caller.user,),
    )
    stage.healer.heal()


def lose_object(stage: Stage) -> None:
    stage.healer.remove("a")


def converge(stage: Stage, *, plan: bool = False) -> None:
    world = stage.world
    body = Body(orjson.dumps({"converge": {"plan": plan}}))
    world.messages += convergence.converge(world.context, world.stack_row("s"), body).messages


def read_live(stage: Stage) -> None:
    stack = stage.world.stack_row("s")
    row = resources.get_resource(stage.world.database, stack, "a")
    assert row is not None
    read_for_resource(stage.world.context, stack, row, ["now"])


def preview(stage: Stage) -> None:
    body = Body(orjson.dumps({"template": template(acts("green")), "converge": True}))
    preview_update(stage.world.context, stage.world.stack_row("s"), body)


def create(stage: Stage) -> None:
    stage.world.create("other", {"a": acts()})


def abandon(stage: Stage) -> None:
    abandoned = adopt_abandon.abandon(stage.world.context, stage.world.stack_row("s"))
    abandoned.document.close()
    stage.world.messages += abandoned.messages


def adopt(stage: Stage) -> None:
    data = orjson.dumps(
        {
            "name": "other",
            "template": template(acts()),
            "resources": {
                "a": {"resource_id": stage.healer.id("a"), "type": Acts.name, "status": "COMPLETE"}
            },
        }
    ).decode()
    body = Body(orjson.dumps({"stack_name": "other", "adopt_stack_data": data}))
    stage.world.messages += create_delete.create(stage.world.context, body).messages


ROWS: Final = [
    Row("create", "caller", CALLER, "create", create),
    Row("adopt", "caller", CALLER, "observe", adopt),
    Row("update (PUT)", "caller", CALLER, "update", update),
    Row("update (PATCH) with content", "caller", CALLER, "update", patch_content),
    Row("update (PATCH) of settings", "unchanged", AUTHOR, "observe", patch_settings),
    Row("rollback on request", "caller", CALLER, "update blue", lambda s: s.roll_back(1), red),
    Row("restore of a snapshot", "caller", CALLER, "update blue", restore_snapshot, snapshot),
    Row("rollback after a failure", "unchanged", AUTHOR, "update blue", fail),
    Row("cancel with rollback", "unchanged", AUTHOR, "update blue", act("cancel_update"), begin_update),
    Row(
        "cancel without rollback",
        "unchanged",
        NOTHING,
        "create",
        act(HALT),
        begin_update,
    ),
    Row("delete", "unchanged", OPERATION, "delete", lambda s: s.world.delete("s")),
    Row("abandon", "unchanged", NOTHING, "delete", abandon),
    Row("check", "unchanged", OPERATION, "observe", act("check")),
    Row("check after a failed update", "unchanged", OPERATION, "observe", act("check"), fail_update),
    Row("suspend", "unchanged", AUTHOR, "suspend", act("suspend")),
    Row("resume", "unchanged", AUTHOR, "resume", act("resume"), done("suspend")),
    Row("snapshot", "unchanged", AUTHOR, "snapshot", lambda s: take(s.world) and None),
    Row("signal", "unchanged", AUTHOR, "signal", lambda s: s.world.signal("s", "a")),
    Row("scaling by a signal", "unchanged", AUTHOR, "create", lambda s: s.world.signal("s", "p"), scalable),
    Row("automatic repair", "unchanged", AUTHOR, "update", heal, update_damage),
    Row("approved repair", "unchanged", AUTHOR, "create", approve, damage),
    Row("converge", "unchanged", AUTHOR, "create", converge, lose_object),
    Row("converge: observation, plan", "unchanged", CALLER, "observe", lambda s: converge(s, plan=True)),
    Row("live attributes", "unchanged", CALLER, "read", read_live),
    Row("preview with observation", "unchanged", CALLER, "observe", preview),
]


@pytest.fixture
def stage(postgres_url: str, keystone: StandIn) -> Iterator[Stage]:
    made = Stage.make(
        postgres_url,
        keystone,
        observation_interval_seconds=30,
        enable_stack_adopt=True,
        enable_stack_abandon=True,
    )
    made.call_as("ada")
    made.world.create("s", {"a": acts()})
    made.deliver()
    yield made
    made.world.close()


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_who_runs_an_operation(stage: Stage, row: Row, caller: str) -> None:
    row.prepare(stage)
    stage.call_as(CALLERS[caller])
    stage.forget_sessions()
    if caller == "gone":
        stage.lose()
    Acts.clear()
    name = "other" if row.do in (create, adopt) else "s"
    row.do(stage)
    author = stage.author(name)
    stage.deliver()
    expected = row.cells[list(CALLERS).index(caller)]
    users = stage.users_of(row.verb) if " " in row.verb else stage.users(row.verb)
    called_as = {"author": {ADA}, "caller": {IDS[CALLERS[caller]]}, "fails": set(), "nothing": set()}
    assert users == called_as[expected], Acts.called
    if row.do is not fail:
        assert author == (IDS[CALLERS[caller]] if row.author == "caller" else ADA)
    for token in Acts.tokens:
        held = {role["name"] for role in token["roles"]}
        assert held <= {*ROLES_OF[token["user"]["id"]]}


ROLES_OF: Final = {
    ADA: ["member", "reader"],
    BOB: ["member", "reader"],
    ROOT: ["admin", "member", "reader"],
}


def documented() -> list[list[str]]:
    """Return the rows of the table in the document."""
    text = DOCUMENT.read_text()
    lines = text[text.index("| Operation | Author afterwards") :].splitlines()
    table = []
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    return table


def test_the_table_of_the_documentation_is_this_table() -> None:
    assert documented() == [[row.name, row.author, *row.cells] for row in ROWS]
