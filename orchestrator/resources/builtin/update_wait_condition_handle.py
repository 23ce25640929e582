"""OS::Heat::UpdateWaitConditionHandle: a handle that every update replaces (docs/internals/resource-types.md
§A8).
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.resources.base import Change, Value
from orchestrator.resources.builtin.aws_wait_condition_handle import AwsWaitConditionHandle


class UpdateWaitConditionHandle(AwsWaitConditionHandle):
    """Like AWS::CloudFormation::WaitConditionHandle, but every update of the stack replaces it, so that wait
    conditions wait again.
    """

    name = "OS::Heat::UpdateWaitConditionHandle"
    always_visited = True

    def change(
        self, before: Mapping[str, Value], after: Mapping[str, Value], changed: frozenset[str]
    ) -> Change:
        """Replace the handle even if no property changes."""
        return "replace"
