"""Stacks in CloudFormation's query API as boto3 uses it, against `orchestrator up`."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from botocore.exceptions import WaiterError

from tests.e2e.cloudformation import body, cfn, coloured, described, refusal, thing, up, wait
from tests.e2e.running import eventually

__all__ = ["cfn", "up"]  # fixtures


@pytest.fixture
def site() -> Iterator[tuple[str, dict[str, str]]]:
    """Serve texts by their paths."""
    texts: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            result = texts.get(self.path)
            self.send_response(404 if result is None else 200)
            data = (result or "").encode()
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", texts
    server.shutdown()
    server.server_close()


def test_a_stack_is_made_described_changed_and_removed(cfn: Any) -> None:
    supplied = [{"ParameterKey": "Colour", "ParameterValue": "blue"}]
    tags = [{"Key": "team", "Value": "red & blue"}, {"Key": "owner", "Value": "a=b"}]
    made = cfn.create_stack(
        StackName="whole", TemplateBody=coloured(), Parameters=supplied, Tags=tags, TimeoutInMinutes=7
    )["StackId"]
    assert made.startswith("arn:openstack:heat::shop:stacks/whole/")
    wait(cfn, "stack_create_complete", "whole")
    stack = described(cfn, "whole")
    assert (stack["StackId"], stack["StackStatus"]) == (made, "CREATE_COMPLETE")
    assert stack["StackStatusReason"] == "Stack CREATE completed successfully"
    assert stack["CreationTime"].year >= 2026
    assert {Parameter["ParameterKey"]: Parameter["ParameterValue"] for Parameter in stack["Parameters"]} == {
        "Colour": "blue",
        "Secret": "******",
    }
    assert stack["Outputs"] == [{"OutputKey": "Said", "OutputValue": "blue", "Description": "What it is"}]
    assert stack["Tags"] == tags
    facts = ("Description", "DisableRollback", "TimeoutInMinutes", "Capabilities", "NotificationARNs")
    assert [stack[name] for name in facts] == ["A thing", False, 7, [], []]

    cfn.update_stack(
        StackName=made, TemplateBody=coloured({"More": thing()}),
        Parameters=[{"ParameterKey": "Colour", "UsePreviousValue": True}],
    )  # fmt: skip
    wait(cfn, "stack_update_complete", "whole")
    stack = described(cfn, "whole")
    assert stack["Outputs"][0]["OutputValue"] == "blue"
    assert stack["Tags"] == tags
    assert stack["LastUpdatedTime"] >= stack["CreationTime"]
    assert set(cfn.get_template(StackName="whole")["TemplateBody"]["Resources"]) == {"Thing", "More"}

    cfn.update_stack(StackName="whole", UsePreviousTemplate=True, Tags=[])
    wait(cfn, "stack_update_complete", "whole")
    stack = described(cfn, "whole")
    assert (stack["Outputs"][0]["OutputValue"], stack["Tags"]) == ("red", [])

    cfn.delete_stack(StackName="whole")
    wait(cfn, "stack_delete_complete", "whole")
    assert refusal(cfn.describe_stacks, StackName="whole") == (
        400,
        "ValidationError",
        "Stack with id whole does not exist",
    )
    assert described(cfn, made)["StackStatus"] == "DELETE_COMPLETE"
    wait(cfn, "stack_delete_complete", made)
    deleted = cfn.list_stacks(StackStatusFilter=["DELETE_COMPLETE"])["StackSummaries"]
    assert [Parameter["StackId"] for Parameter in deleted] == [made]
    assert deleted[0]["TemplateDescription"] == "A thing"
    assert "whole" not in [Parameter["StackName"] for Parameter in cfn.list_stacks()["StackSummaries"]]


def test_resources_and_events_are_listed(cfn: Any) -> None:
    made = cfn.create_stack(StackName="parts", TemplateBody=coloured({"More": thing()}))["StackId"]
    wait(cfn, "stack_create_complete", "parts")
    summaries = cfn.list_stack_resources(StackName="parts")["StackResourceSummaries"]
    assert [summary["LogicalResourceId"] for summary in summaries] == ["More", "Thing"]
    assert {summary["ResourceStatus"] for summary in summaries} == {"CREATE_COMPLETE"}
    physical = summaries[1]["PhysicalResourceId"]
    by_name = cfn.describe_stack_resources(StackName="parts", LogicalResourceId="Thing")["StackResources"]
    assert [(summary["StackId"], summary["PhysicalResourceId"]) for summary in by_name] == [(made, physical)]
    by_thing = cfn.describe_stack_resources(PhysicalResourceId=physical)["StackResources"]
    assert [summary["LogicalResourceId"] for summary in by_thing] == ["More", "Thing"]
    detail = cfn.describe_stack_resource(StackName="parts", LogicalResourceId="Thing")["StackResourceDetail"]
    assert (detail["ResourceType"], detail["Metadata"]) == ("OS::Heat::TestResource", "{}")
    events = cfn.describe_stack_events(StackName="parts")["StackEvents"]
    assert len({summary["EventId"] for summary in events}) == len(events) == 6
    newest, oldest = events[0], events[-1]
    assert (newest["LogicalResourceId"], newest["ResourceStatus"]) == ("parts", "CREATE_COMPLETE")
    assert (oldest["LogicalResourceId"], oldest["ResourceStatus"]) == ("parts", "CREATE_IN_PROGRESS")
    reported = next(summary for summary in events if summary["LogicalResourceId"] == "Thing")
    assert json.loads(reported["ResourceProperties"])["value"] == "red"
    assert refusal(cfn.describe_stack_resource, StackName="parts", LogicalResourceId="None")[1:] == (
        "ValidationError",
        "Resource None does not exist for stack parts",
    )


def test_a_failed_create_is_rolled_back_unless_disabled(cfn: Any) -> None:
    failing = body({"Bad": thing(fail=True), "Good": thing()})
    cfn.create_stack(StackName="back", TemplateBody=failing)
    cfn.create_stack(StackName="left", TemplateBody=failing, OnFailure="DO_NOTHING")
    for name, status in (("back", "ROLLBACK_COMPLETE"), ("left", "CREATE_FAILED")):
        with pytest.raises(WaiterError):
            wait(cfn, "stack_create_complete", name)
        eventually(lambda name=name, status=status: described(cfn, name)["StackStatus"] == status)
    assert [
        list_stack_resource["ResourceStatus"]
        for list_stack_resource in cfn.list_stack_resources(StackName="back")["StackResourceSummaries"]
    ] == []
    events = cfn.describe_stack_events(StackName="back")["StackEvents"]
    own = [
        list_stack_resource["ResourceStatus"]
        for list_stack_resource in events
        if list_stack_resource["LogicalResourceId"] == "back"
    ]
    assert own[:2] == ["ROLLBACK_COMPLETE", "ROLLBACK_IN_PROGRESS"]


def test_a_failed_create_is_deleted_if_requested(cfn: Any) -> None:
    failing = body({"Bad": thing(fail=True), "Good": thing()})
    made = cfn.create_stack(StackName="gone", TemplateBody=failing, OnFailure="DELETE")["StackId"]
    wait(cfn, "stack_delete_complete", made)
    assert described(cfn, made)["StackStatus"] == "DELETE_COMPLETE"
    assert refusal(cfn.describe_stacks, StackName="gone")[1] == "ValidationError"
    events = cfn.describe_stack_events(StackName=made)["StackEvents"]
    own = [event["ResourceStatus"] for event in reversed(events) if event["LogicalResourceId"] == "gone"]
    assert own == ["CREATE_IN_PROGRESS", "CREATE_FAILED", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"]
    cfn.create_stack(StackName="gone", TemplateBody=body({"Good": thing()}), OnFailure="DELETE")
    wait(cfn, "stack_create_complete", "gone")
    cfn.update_stack(StackName="gone", TemplateBody=failing)
    with pytest.raises(WaiterError):
        wait(cfn, "stack_update_complete", "gone")
    wait(cfn, "stack_rollback_complete", "gone")  # an update never deletes resources created before it
    cfn.delete_stack(StackName="gone")


def test_a_nested_stack_is_made_from_a_template_that_is_fetched(
    cfn: Any, site: tuple[str, dict[str, str]]
) -> None:
    url, texts = site
    texts["/child"] = coloured()

    def outer(colour: str) -> str:
        properties = {"TemplateURL": f"{url}/child", "Parameters": {"Colour": colour}}
        child = {"Type": "AWS::CloudFormation::Stack", "Properties": properties}
        said = {"Value": {"Fn::GetAtt": ["Child", "Outputs.Said"]}}
        return body({"Child": child}, Outputs={"Said": said})

    made = cfn.create_stack(StackName="outer", TemplateBody=outer("blue"))["StackId"]
    wait(cfn, "stack_create_complete", "outer")
    assert described(cfn, "outer")["Outputs"][0]["OutputValue"] == "blue"
    [child] = cfn.describe_stack_resources(StackName="outer")["StackResources"]
    inner = described(cfn, child["PhysicalResourceId"])
    assert (inner["ParentId"], inner["RootId"], inner["StackStatus"]) == (made, made, "CREATE_COMPLETE")
    texts["/whole"] = outer("green")
    cfn.update_stack(StackName="outer", TemplateURL=f"{url}/whole")
    wait(cfn, "stack_update_complete", "outer")
    assert described(cfn, "outer")["Outputs"][0]["OutputValue"] == "green"
    texts["/child"] = body({"Bad": {"Type": "No::Such"}})
    assert refusal(cfn.create_stack, StackName="bad", TemplateBody=outer("x"))[1] == "ValidationError"
    gone = refusal(cfn.create_stack, StackName="none", TemplateURL=f"{url}/none")
    assert gone[0] == 400
    assert f"{url}/none" in gone[2]
    cfn.delete_stack(StackName="outer")
    wait(cfn, "stack_delete_complete", made)
    assert described(cfn, child["PhysicalResourceId"])["StackStatus"] == "DELETE_COMPLETE"


def test_an_update_that_fails_or_is_cancelled_leads_back(cfn: Any) -> None:
    cfn.create_stack(StackName="twice", TemplateBody=body({"A": thing("one")}))
    wait(cfn, "stack_create_complete", "twice")
    cfn.update_stack(StackName="twice", TemplateBody=body({"A": thing("two"), "B": thing(fail=True)}))
    with pytest.raises(WaiterError):
        wait(cfn, "stack_update_complete", "twice")
    wait(cfn, "stack_rollback_complete", "twice")
    slow = body({"A": thing("three"), "W": thing(wait_secs=60)})
    cfn.update_stack(StackName="twice", TemplateBody=slow)
    assert described(cfn, "twice")["StackStatus"] == "UPDATE_IN_PROGRESS"
    cfn.cancel_update_stack(StackName="twice")
    wait(cfn, "stack_rollback_complete", "twice")
    summaries = {list_stack["StackName"]: list_stack for list_stack in cfn.list_stacks()["StackSummaries"]}
    assert summaries["twice"]["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    result = cfn.list_stacks(StackStatusFilter=["UPDATE_ROLLBACK_COMPLETE"])["StackSummaries"]
    assert [list_stack["StackName"] for list_stack in result] == ["twice"]
    events = cfn.describe_stack_events(StackName="twice")["StackEvents"]
    own = [
        list_stack["ResourceStatus"] for list_stack in events if list_stack["LogicalResourceId"] == "twice"
    ]
    assert own[:3] == ["UPDATE_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_IN_PROGRESS"]
    assert refusal(cfn.cancel_update_stack, StackName="twice")[:2] == (400, "ValidationError")


def test_a_wait_condition_is_signalled_at_its_url(cfn: Any) -> None:
    template = body(
        {
            "Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"},
            "Wait": {
                "Type": "AWS::CloudFormation::WaitCondition",
                "Properties": {"Handle": {"Ref": "Handle"}, "Timeout": "120"},
            },
        },
        Outputs={"Url": {"Value": {"Ref": "Handle"}}, "Data": {"Value": {"Fn::GetAtt": ["Wait", "Data"]}}},
    )
    cfn.create_stack(StackName="waits", TemplateBody=template)

    def url() -> str:
        outputs = {item["OutputKey"]: item.get("OutputValue") for item in described(cfn, "waits")["Outputs"]}
        return outputs.get("Url") or ""

    place = eventually(lambda: url() if url().startswith("http") else "")
    said = {"Status": "SUCCESS", "Reason": "r", "Data": "d", "UniqueId": "u"}
    httpx.put(place, json=said, timeout=20).raise_for_status()
    wait(cfn, "stack_create_complete", "waits")
    outputs = {entry["OutputKey"]: entry["OutputValue"] for entry in described(cfn, "waits")["Outputs"]}
    assert json.loads(outputs["Data"]) == {"u": "d"}
