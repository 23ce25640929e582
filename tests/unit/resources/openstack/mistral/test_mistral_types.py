"""The types of Mistral."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from orchestrator.errors import ProviderConflict, ProviderError, ProviderSilent
from orchestrator.resources.base import Context, ResourceType
from orchestrator.resources.openstack.mistral.cron_trigger import CronTrigger
from orchestrator.resources.openstack.mistral.definition import definition
from orchestrator.resources.openstack.mistral.external_resource import ExternalResource
from orchestrator.resources.openstack.mistral.workflow import Workflow
from orchestrator.template.definition import ResourceDefinition
from orchestrator.testing.scripted_cloud import ScriptedCloud

TASK = {"name": "t", "action": "std.noop"}
DIRECT = {"type": "direct", "tasks": [TASK]}
NAME = "stack-it-abc"


@pytest.fixture
def script() -> ScriptedCloud:
    return ScriptedCloud()


def context(kind: ResourceType, script: ScriptedCloud, action: str = "CREATE", **given: Any) -> Context:
    properties, faults = kind.read_properties(given)
    assert faults == []
    return Context(
        name="it",
        physical_name=NAME,
        token="00000000-1",
        action=action,
        properties=properties,
        cloud=script.cloud,
    )


def faults(kind: ResourceType, **given: Any) -> list[str]:
    written = ResourceDefinition("it", kind.name, {"properties": given}, frozenset(), {}, frozenset())
    properties, _ = kind.read_properties(given)
    return [fault.message for fault in kind.validate_among("it", properties, {"it": written})]


class TestDefinitions:
    def test_names_have_hyphens_and_inputs_are_a_list(self):
        props, _ = Workflow().read_properties(
            {
                **DIRECT,
                "input": {"a": 1, "b": None},
                "output": {"x": "<% $.a %>"},
                "tags": ["tag"],
                "description": "d",
                "task_defaults": {"on_error": ["t"], "retry": {}},
                "tasks": [
                    {**TASK, "on_success": ["u"], "with_items": "i in <% $.a %>", "keep_result": False}
                ],
            }
        )
        assert yaml.safe_load(definition("w", props)) == {
            "version": "2.0",
            "w": {
                "type": "direct",
                "description": "d",
                "tags": ["tag"],
                "output": {"x": "<% $.a %>"},
                "input": ["a", "b"],
                "tasks": {
                    "t": {
                        "action": "std.noop",
                        "on-success": ["u"],
                        "with-items": "i in <% $.a %>",
                        "keep-result": False,
                    }
                },
                "task-defaults": {"on-error": ["t"]},
            },
        }

    def test_policies_are_members_of_the_task(self):
        task = {**TASK, "policies": {"wait_before": 5, "timeout": 6}}
        assert yaml.safe_load(definition("w", {"type": "direct", "tasks": [task]}))["w"]["tasks"]["t"] == {
            "action": "std.noop",
            "wait-before": 5,
            "timeout": 6,
        }

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            (
                {"type": "reverse"},
                "'task_name' is not assigned in 'params' in case of reverse type workflow.",
            ),
            (
                {"tasks": [{**TASK, "workflow": "w"}]},
                "Cannot define the following properties at the same time: workflow, action.",
            ),
            (
                {"tasks": [{"name": "t"}]},
                "At least one of the following properties must be specified: workflow, action.",
            ),
            (
                {"tasks": [{**TASK, "requires": ["u"]}]},
                "task t contains property 'requires' in case of direct workflow. Only reverse workflows can "
                "contain property 'requires'.",
            ),
            (
                {"tasks": [{**TASK, "policies": {"timeout": 1}, "timeout": 2}]},
                "Property policies and timeout cannot be used both at one time.",
            ),
            (
                {"tasks": [{**TASK, "concurrency": 2}]},
                "concurrency cannot be specified without with_items.",
            ),
        ],
    )
    def test_faults_have_heats_words(self, changes, message):
        assert faults(Workflow(), **DIRECT | changes) == [message]

    def test_values_that_are_not_known_yet_are_no_fault(self):
        given = {"type": "reverse", "params": {"get_param": "p"}}
        assert faults(Workflow(), **given, tasks=[{"name": "t", "workflow": {"get_resource": "w"}}]) == []


class TestWorkflows:
    def test_the_key_for_signals_is_stored_before_the_workflow_is_created(self, script):
        kind = Workflow()
        ctx = context(kind, script, **DIRECT)
        created = kind.create(ctx, ctx.properties)
        assert script.requests == []
        assert (created.physical_id, created.secret) == (NAME, True)
        ctx = replace(ctx, data=created.data)
        assert kind.observe(ctx, NAME).step == "define"
        script.answers("POST", "/workflows", {"workflows": [{"id": "w1", "name": NAME}]}, status=201)
        defined = kind.advance(ctx, NAME, ctx.properties, "define")
        (request,) = script.requests
        assert request.headers["Content-Type"] == "text/plain"
        assert yaml.safe_load(request.content)[NAME]["tasks"] == {"t": {"action": "std.noop"}}
        script.answers("GET", "/workflows/w1", {"id": "w1"})
        observation = kind.observe(replace(ctx, data=defined.data), NAME)
        assert observation.ready
        assert observation.attributes["alarm_url"] == created.data["url"]
        assert kind.attributes["alarm_url"].secret

    def test_a_second_request_finds_the_workflow_of_the_first(self, script):
        kind = Workflow()
        ctx = context(kind, script, **DIRECT)
        ctx = replace(ctx, data=kind.create(ctx, ctx.properties).data)
        script.answers("POST", "/workflows", {"faultstring": "Duplicate entry"}, status=409)
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        script.answers("GET", f"/workflows/{NAME}", {"id": "w1", "created_at": now})
        assert kind.advance(ctx, NAME, ctx.properties, "define").data["id"] == "w1"
        script.answers("GET", f"/workflows/{NAME}", {"id": "w0", "created_at": "2020-01-01 00:00:00"})
        with pytest.raises(ProviderConflict, match="Duplicate entry"):
            kind.advance(ctx, NAME, ctx.properties, "define")

    def test_an_update_replaces_the_definition(self, script):
        kind = Workflow()
        script.answers("PUT", "/workflows", {"workflows": [{"id": "w1"}]})
        ctx = replace(context(kind, script, "UPDATE", **DIRECT), data={"id": "w1", "url": "u"})
        assert kind.update(ctx, NAME, ctx.properties, frozenset({"tasks"})).data == ctx.data
        assert len(script.sent("PUT")) == 1
        kind.update(ctx, NAME, ctx.properties, frozenset({"params"}))  # not a part of the definition
        assert len(script.sent("PUT")) == 1
        assert kind.change({}, {}, frozenset({"name"})) == "replace"

    @pytest.mark.parametrize(
        ("whole", "details", "given", "params"),
        [
            (False, None, {"a": 1, "b": 2}, {"task_name": "t"}),
            (
                False,
                {"input": {"a": 5}, "params": {"env": {}}},
                {"a": 5, "b": 2},
                {"task_name": "t", "env": {}},
            ),
            (True, {"b": 6}, {"a": 1, "b": 6}, {"task_name": "t"}),
        ],
    )
    def test_a_signal_starts_an_execution(self, script, whole, details, given, params):
        kind = Workflow()
        own = {"input": {"a": 1, "b": 2}, "params": {"task_name": "t"}, "use_request_body_as_input": whole}
        ctx = replace(
            context(kind, script, "CHECK", **DIRECT, **own), data={"url": "u", "executions": ["e0"]}
        )
        script.answers("POST", "/executions", {"id": "e1"}, status=201)
        assert kind.signal(ctx, NAME, details).data == {"url": "u", "executions": ["e1", "e0"]}
        body = script.requests[0].body
        assert (body["workflow_name"], json.loads(body["input"])) == (NAME, given)
        assert json.loads(body["params"]) == params

    @pytest.mark.parametrize(
        ("details", "message"),
        [
            ({"input": [1]}, "Input in signal data must be a map"),
            ({"input": {"c": 1}}, "Unknown input c"),
            ({"params": [1]}, "Params must be a map"),
            ("text", "must be a map"),
        ],
    )
    def test_a_wrong_signal_is_refused(self, script, details, message):
        kind = Workflow()
        ctx = context(kind, script, "CHECK", **DIRECT, input={"a": 1})
        with pytest.raises(ProviderError, match=message):
            kind.signal(ctx, NAME, details)

    def test_a_delete_removes_the_executions(self, script):
        kind = Workflow()
        script.answers("DELETE", ".*", status=404)
        data = {"id": "w1", "executions": ["e1"]}
        ctx = replace(context(kind, script, "DELETE", **DIRECT), data=data)
        kind.delete(ctx, NAME)
        assert [one.target for one in script.requests] == ["/executions/e1?force=true", "/workflows/w1"]


TRIGGER = {"pattern": "0 1 * * *", "workflow": {"name": "w", "input": {"a": 1}}}


class TestCronTriggers:
    def test_it_names_its_workflow(self, script):
        kind = CronTrigger()
        script.answers("POST", "/cron_triggers", {"name": NAME}, status=201)
        ctx = context(kind, script, **TRIGGER, count=3)
        assert kind.create(ctx, ctx.properties).physical_id == NAME
        assert script.requests[0].body == {
            "name": NAME,
            "workflow_name": "w",
            "workflow_input": {"a": 1},
            "pattern": "0 1 * * *",
            "remaining_executions": 3,
        }

    def test_a_workflow_may_be_named_by_its_id(self, script):
        kind = CronTrigger()
        script.answers("POST", "/cron_triggers", {"name": NAME}, status=201)
        workflow = "b4a1a3f0-8f0d-4a3c-9d4c-3f6a1f2b7e10"
        ctx = context(kind, script, first_time="2099-01-01 00:00", workflow={"name": workflow})
        kind.create(ctx, ctx.properties)
        assert script.requests[0].body["workflow_id"] == workflow

    def test_the_trigger_of_a_lost_response_is_found_by_its_name(self, script):
        kind = CronTrigger()
        ctx = context(kind, script, **TRIGGER)
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        for created_at, found in ((now, NAME), ("2020-01-01 00:00:00", None)):
            script.answers("GET", f"/cron_triggers/{NAME}", {"name": NAME, "created_at": created_at})
            assert kind.find(ctx, ctx.token) == found

    @pytest.mark.parametrize(
        ("given", "exists"),
        [({}, False), ({"count": 1}, True), ({"pattern": None, "first_time": "2020-01-01 00:00"}, True)],
    )
    def test_a_trigger_ends_with_its_last_execution(self, script, given, exists):
        kind = CronTrigger()
        script.answers("GET", f"/cron_triggers/{NAME}", {}, status=404)
        merged = {name: value for name, value in {**TRIGGER, **given}.items() if value is not None}
        ctx = context(kind, script, "CHECK", **merged)
        assert kind.observe(ctx, NAME).exists is exists
        assert not kind.observe(replace(ctx, action="DELETE"), NAME).exists
        names = frozenset({"remaining_executions", "show"})
        assert kind.read_attributes(ctx, NAME, names) == {"remaining_executions": None, "show": None}

    def test_it_needs_a_time(self):
        assert faults(CronTrigger(), workflow={"name": "w"}) == [
            "At least one of the following properties must be specified: pattern, first_time."
        ]


ACTIONS = {
    "CREATE": {"workflow": "make", "params": {"env": {"x": 1}}},
    "DELETE": {"workflow": "unmake"},
}


class TestExternalResources:
    def run(self, script, ctx, data, step=""):
        """Return the observation, and the data and the id after its step."""
        kind = ExternalResource()
        ctx = replace(ctx, data=data, step=step)
        seen = kind.observe(ctx, "id")
        done = kind.advance(ctx, "id", ctx.properties, seen.step) if seen.step else None
        return seen, done

    def test_a_create_executes_a_workflow_and_records_its_output(self, script):
        kind = ExternalResource()
        ctx = context(kind, script, actions=ACTIONS, input={"a": 1})
        created = kind.create(ctx, ctx.properties)
        script.answers("POST", "/executions", {"id": "e1"}, status=201)
        seen, done = self.run(script, ctx, created.data)
        assert (seen.step, done.data["execution"]) == ("run", "e1")
        body = script.sent("POST")[0].body
        assert (body["workflow_name"], body["description"]) == ("make", "Heat managed")
        assert (json.loads(body["input"]), json.loads(body["params"])) == ({"a": 1}, {"env": {"x": 1}})
        script.answers("GET", "/executions/e1", {"state": "RUNNING"})
        assert not self.run(script, ctx, done.data, "run")[0].ready
        output = json.dumps({"resource_id": 7, "b": "c"})
        script.answers("GET", "/executions/e1", {"state": "SUCCESS", "output": output})
        seen, done = self.run(script, ctx, done.data, "run")
        assert (seen.step, done.physical_id) == ("record", "7")
        seen, _ = self.run(script, ctx, done.data, "record")
        assert seen.ready
        assert seen.attributes == {"output": {"resource_id": 7, "b": "c"}}

    def test_a_lost_answer_starts_no_second_execution(self, script):
        kind = ExternalResource()
        ctx = context(kind, script, actions=ACTIONS)
        script.answers("POST", "/executions", ProviderSilent("no answer"), times=1)
        data = kind.create(ctx, ctx.properties).data
        with pytest.raises(ProviderSilent):
            self.run(script, ctx, data)
        script.answers("POST", "/executions", {"id": "e1"}, status=201)
        self.run(script, ctx, data, "run")
        first, second = (request.body["id"] for request in script.sent("POST"))
        assert first == second

    def test_later_executions_receive_earlier_outputs_and_another_id(self, script):
        ctx = context(ExternalResource(), script, "DELETE", actions=ACTIONS)
        script.answers("POST", "/executions", {"id": "e2"}, status=201)
        self.run(script, ctx, {"runs": 1, "outputs": {"b": "c"}})
        self.run(script, ctx, {"runs": 2})
        first, second = script.sent("POST")
        assert json.loads(first.body["params"])["env"] == {"heat_extresource_data": {"b": "c"}}
        assert first.body["id"] != second.body["id"]

    def test_an_operation_without_a_workflow_is_complete(self, script):
        for action, exists in (("UPDATE", True), ("SUSPEND", True), ("DELETE", False)):
            ctx = context(ExternalResource(), script, action, actions={"CREATE": {"workflow": "w"}})
            seen, _ = self.run(script, ctx, {"runs": 1})
            assert (seen.ready, seen.exists) == (True, exists)

    def test_a_resource_that_was_never_created_is_deleted_without_a_workflow(self, script):
        ctx = context(ExternalResource(), script, "DELETE", actions=ACTIONS)
        assert not self.run(script, ctx, {"runs": 0})[0].exists

    @pytest.mark.parametrize(
        ("execution", "error"),
        [
            ({"state": "ERROR", "state_info": "broken"}, "broken"),
            ({"state": "CANCELLED"}, "Unknown"),
            ({"state": "ODD"}, "Mistral execution is in unknown state. - Unknown status ODD"),
        ],
    )
    def test_a_failed_execution_fails_the_resource(self, script, execution, error):
        ctx = context(ExternalResource(), script, actions=ACTIONS)
        script.answers("GET", "/executions/e1", execution)
        seen, _ = self.run(script, ctx, {"runs": 1, "execution": "e1"}, "run")
        assert seen.error.startswith(error)

    def test_the_execution_of_a_failed_operation_is_forgotten(self, script):
        ctx = context(ExternalResource(), script, "DELETE", actions=ACTIONS)
        seen, done = self.run(script, ctx, {"runs": 1, "execution": "e1"})
        assert (seen.step, done.data["execution"]) == ("begin", None)
        script.answers("POST", "/executions", {"id": "e2"}, status=201)
        seen, done = self.run(script, ctx, done.data, "begin")
        assert (seen.step, done.data["execution"]) == ("run", "e2")

    def test_certain_inputs_replace_it(self):
        kind = ExternalResource()
        before = {"input": {"a": 1, "b": 1}}
        after = {"input": {"a": 1, "b": 2}, "replace_on_change_inputs": ["b"]}
        assert kind.change(before, after, frozenset({"input"})) == "replace"
        assert (
            kind.change(before, {**after, "replace_on_change_inputs": []}, frozenset({"input"})) == "update"
        )
        assert kind.change(before, before, frozenset()) == "keep"
        assert kind.change(before, {**before, "always_update": True}, frozenset()) == "update"
