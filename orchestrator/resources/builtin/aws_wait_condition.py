"""AWS::CloudFormation::WaitCondition: OS::Heat::WaitCondition with CloudFormation's property names
(docs/internals/resource-types.md §A8).
"""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from orchestrator.resources.base import Attribute, Context, Property
from orchestrator.resources.builtin.wait_condition import HANDLES, MAX_TIMEOUT_SECONDS, WaitCondition
from orchestrator.resources.builtin.wait_handle_base import AWS
from orchestrator.resources.stack_context import RequiredResource
from orchestrator.schema.constraints import Range


class AwsWaitCondition(WaitCondition):
    """Waits for signals to the URL of its handle before its dependents start."""

    name = "AWS::CloudFormation::WaitCondition"
    support_version = "2014.1"
    property_names = ("Handle", "Timeout", "Count", "Data")
    properties = {
        "Handle": Property("string", "A reference to the handle that receives the signals.", required=True),
        "Timeout": Property(
            "integer",
            "Seconds to wait for the signals.",
            required=True,
            constraints=(Range(min=1, max=MAX_TIMEOUT_SECONDS),),
        ),
        "Count": Property(
            "integer",
            "Number of success signals to wait for.",
            default=1,
            update_allowed=True,
            constraints=(Range(min=1),),
        ),
    }
    attributes = {"Data": Attribute("The data of all signals, as JSON: an object by id.", type="string")}

    def handle(self, ctx: Context) -> RequiredResource:
        """Return the handle that the URL refers to.

        Raises:
            ValueError: the URL does not refer to a handle of this stack.
        """
        url = str(ctx.properties["Handle"])
        peer = ctx.required_resources.find(url, watch=True)
        if peer is None:
            raise ValueError(f"WaitCondition invalid Handle {_failure(url, ctx)}")
        if HANDLES.get(peer.type) is not AWS:
            raise ValueError(f"WaitCondition invalid Handle {peer.name}")
        return peer


def _failure(url: str, ctx: Context) -> str:
    """Return which part of a URL does not lead to a handle of this stack."""
    _, _, arn = unquote(urlsplit(url).path).partition("/arn:openstack:heat::")
    tenant, _, path = arn.partition(":stacks/")
    parts = [unquote(part) for part in path.split("/")]
    if not arn or len(parts) != 4:
        return "URL"  # the URL itself may contain a signature
    if unquote(tenant) != ctx.location.project_id:
        return f"tenant {unquote(tenant)}"
    if parts[0] != ctx.location.stack_name:
        return f"stack {parts[0]}"
    if parts[1] != ctx.location.stack_id:
        return f"stack {parts[1]}"
    return parts[3]
