"""AWS::CloudFormation::WaitConditionHandle: a signed URL to signal at
(docs/internals/resource-types.md §A8).
"""

from __future__ import annotations

from orchestrator.resources.base import Context, Signalled, Value
from orchestrator.resources.builtin.wait_handle_base import AWS, Handle


class AwsWaitConditionHandle(Handle):
    """Takes signals at a signed URL, which is its reference id."""

    name = "AWS::CloudFormation::WaitConditionHandle"
    support_version = "2014.1"
    keys = AWS

    def signal(self, ctx: Context, physical_id: str, details: Value) -> Signalled:
        """Store a complete signal; ignore an incomplete one."""
        return Signalled() if details is None else super().signal(ctx, physical_id, details)
