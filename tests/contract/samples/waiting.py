"""Types that wait for signals, and those that give access."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.resources.base import Context
from orchestrator.resources.stack_context import RequiredResource, StackLocation
from orchestrator.testing.samples import Sample

SAID = {"Status": "SUCCESS", "Reason": "done", "Data": None}
HANDLE = RequiredResource("h", "AWS::CloudFormation::WaitConditionHandle", {}, {"1": SAID, "2": SAID})
NEIGHBOURS = {"h": HANDLE, "u": RequiredResource("u", "AWS::IAM::User", {}, {})}


class Neighbours:
    """The requirements of the resource under contract, by reference id."""

    def find(self, reference_id: str, *, watch: bool = False) -> RequiredResource | None:
        return NEIGHBOURS.get(reference_id)

    def forget(self) -> None:
        pass


def connect(ctx: Context) -> Context:
    """Give the context neighbours and a place."""
    return replace(
        ctx,
        required_resources=Neighbours(),
        location=StackLocation("p", "s", "1", "a", "http://127.0.0.1:8004"),
    )


def _said(number: int) -> tuple[str, dict[str, object]]:
    return "h", {**SAID, "UniqueId": number}


BESIDE = {name: {"type": HANDLE.type} for name in ("h", "h2")}

SAMPLES = (
    Sample(
        "OS::Heat::WaitConditionHandle",
        changes={"signal_transport": "CFN_SIGNAL"},
        prepare_context=connect,
    ),
    Sample("AWS::CloudFormation::WaitConditionHandle", prepare_context=connect),
    Sample("OS::Heat::UpdateWaitConditionHandle", prepare_context=connect),
    Sample(
        "OS::Heat::WaitCondition",
        {"handle": "h", "timeout": 60},
        changes={"count": 2, "handle": {"get_resource": "h2"}},
        prepare_context=connect,
        in_stack={"handle": {"get_resource": "h"}},
        other_resources=BESIDE,
        signals=(_said(1), _said(2)),
        slow_changes=frozenset({"handle"}),  # it would wait for signals to another handle
    ),
    Sample(
        "AWS::CloudFormation::WaitCondition",
        {"Handle": "h", "Timeout": 60},
        changes={"Count": 2},
        prepare_context=connect,
        in_stack={"Handle": {"get_resource": "h"}},
        other_resources=BESIDE,
        signals=(_said(1), _said(2)),
        slow_changes=frozenset({"Handle"}),
    ),
    Sample("OS::Heat::AccessPolicy", {"AllowedResources": ["it"]}, changes={"AllowedResources": []}),
    Sample("AWS::IAM::User", changes={"Policies": [{"Statement": []}]}),
    Sample(
        "AWS::IAM::AccessKey",
        {"UserName": "u"},
        changes={"UserName": {"get_resource": "u2"}},
        prepare_context=connect,
        in_stack={"UserName": {"get_resource": "u"}},
        other_resources={name: {"type": "AWS::IAM::User"} for name in ("u", "u2")},
    ),
)
