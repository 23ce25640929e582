"""OS::Heat::UpdateWaitConditionHandle: a handle that is another one after every update (spec A8)."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.resources.base import Change, Value
from orchestrator.resources.builtin.aws_wait_condition_handle import AwsWaitConditionHandle


class UpdateWaitConditionHandle(AwsWaitConditionHandle):
    """As AWS::CloudFormation::WaitConditionHandle; each update of the stack makes a new one, to be waited for
    anew.
    """

    name = "OS::Heat::UpdateWaitConditionHandle"
    always_visited = True

    def change(
        self, before: Mapping[str, Value], after: Mapping[str, Value], changed: frozenset[str]
    ) -> Change:
        """Make another one, even if nothing changes."""
        return "replace"
