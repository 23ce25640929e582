"""The name of each view in the policy (`security/policy.py`), and the check for all of them."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from flask import g, request

from api.dependencies import caller, dependencies
from api.middleware import audit_records
from orchestrator.security.policy import policy_of, require

# Views with their own check: the operation is in the body, the caller is authenticated by a signature,
# or roles alone do not decide. A name here is used by the audit of rejected requests.
ASKING: Final = frozenset(
    {"stacks.act", "stacks.update", "cfn.query", "cfn.signal", "cfn.wait_condition", "catalogue.services"}
)

NAMES: Final = MappingProxyType(
    {
        "adoption.abandon": "stacks:abandon",
        "adoption.export": "stacks:export",
        "catalogue.build_info": "build_info:build_info",
        "catalogue.type_index": "stacks:list_resource_types",
        "catalogue.type_schema": "stacks:resource_schema",
        "catalogue.type_template": "stacks:generate_template",
        "documents.environment": "stacks:environment",
        "documents.files": "stacks:files",
        "documents.template": "stacks:template",
        "events.index": "events:index",
        "events.of_project": "events:index",
        "events.of_resource": "events:index",
        "events.show": "events:show",
        "events.stream": "events:index",
        "events.stream_of_project": "events:index",
        "graph.dependencies_of": "resource:show",
        "observation_policies.create": "stacks:observation_policy",
        "observation_policies.delete": "stacks:observation_policy",
        "observation_policies.effective": "stacks:show_observation_policy",
        "observation_policies.index": "stacks:show_observation_policy",
        "observation_policies.show": "stacks:show_observation_policy",
        "observations.history": "observations:history",
        "observations.history_of_stack": "observations:history",
        "observations.index": "observations:index",
        "observations.notify": "observations:notify",
        "observations.of_stack": "observations:index",
        "outputs.index": "stacks:list_outputs",
        "outputs.show": "stacks:show_output",
        "pictures.field": "resource:index",
        "pictures.field_changes": "resource:index",
        "pictures.field_names": "resource:index",
        "pictures.field_summary": "resource:index",
        "overview.show": "stacks:index",
        "previews.create": "stacks:preview",
        "previews.update PATCH": "stacks:preview_update_patch",
        "previews.update PUT": "stacks:preview_update",
        "repairs.approve": "stacks:repair",
        "repairs.decline": "stacks:repair",
        "repairs.index": "stacks:list_repairs",
        "repairs.show": "stacks:list_repairs",
        "resources.index": "resource:index",
        "resources.metadata": "resource:metadata",
        "resources.show": "resource:show",
        "revisions.diff": "stacks:diff_revisions",
        "revisions.environment": "stacks:show_revision",
        "revisions.failures": "stacks:failures",
        "revisions.files": "stacks:show_revision",
        "revisions.index": "stacks:list_revisions",
        "revisions.rollback": "stacks:rollback",
        "revisions.show": "stacks:show_revision",
        "revisions.template": "stacks:show_revision",
        "signals.hooks": "resource:hooks",
        "signals.mark_unhealthy": "resource:mark_unhealthy",
        "signals.send": "resource:signal",
        "snapshots.create": "stacks:snapshot",
        "snapshots.delete": "stacks:delete_snapshot",
        "snapshots.index": "stacks:list_snapshots",
        "snapshots.restore": "stacks:restore_snapshot",
        "snapshots.show": "stacks:show_snapshot",
        "software_configs.create": "software_configs:create",
        "software_configs.delete": "software_configs:delete",
        "software_configs.index": "software_configs:index",
        "software_configs.show": "software_configs:show",
        "software_deployments.create": "software_deployments:create",
        "software_deployments.delete": "software_deployments:delete",
        "software_deployments.index": "software_deployments:index",
        "software_deployments.metadata": "software_deployments:metadata",
        "software_deployments.show": "software_deployments:show",
        "software_deployments.update": "software_deployments:update",
        "stack_maps.show": "resource:index",
        "stacks.create": "stacks:create",
        "stacks.delete": "stacks:delete",
        "stacks.detail": "stacks:detail",
        "stacks.index": "stacks:index",
        "stacks.show": "stacks:show",
        "stacks.update PATCH": "stacks:update_patch",
        "stacks.update PUT": "stacks:update",
        "templates.function_index": "stacks:list_template_functions",
        "templates.validate": "stacks:validate_template",
        "templates.version_index": "stacks:list_template_versions",
        "timelines.show": "events:index",
        "webhooks.create": "webhooks:create",
        "webhooks.delete": "webhooks:delete",
        "webhooks.index": "webhooks:index",
        "webhooks.rearm": "webhooks:rearm",
        "webhooks.show": "webhooks:show",
        "webhooks.test": "webhooks:test",
        "why.of_resource": "resource:why",
        "why.of_stack": "stacks:why",
        "why.progress": "stacks:progress",
    }
)
"""View -> its name in the policy; where one view serves two, with the method."""


def name_of(endpoint: str, method: str) -> str | None:
    """Return the name of a view in the policy; None if it has none."""
    if endpoint.startswith("lookup."):
        return "stacks:lookup"
    return NAMES.get(endpoint) or NAMES.get(f"{endpoint} {method}")


def enforce() -> None:
    """Return if the caller may use this view.

    Raises:
        Forbidden: the policy does not allow it.
        Unavailable: the audit record is required and cannot be written.
    """
    endpoint = request.endpoint or ""
    if endpoint in ASKING:
        return
    name = name_of(endpoint, request.method)
    if name is None:  # a test finds such a view; it is treated like reading or changing a stack
        name = "stacks:show" if request.method == "GET" else "stacks:update"
    require_named(name)


def require_named(name: str) -> None:
    """Return if the policy allows the caller the operation of that name, and its audit record is written.

    Raises:
        Forbidden: the policy does not allow it.
        Unavailable: the audit record is required and cannot be written.
    """
    g.policy_name = name  # for the audit
    require(policy_of(dependencies().settings), name, caller())
    audit_records.begin(name, caller())
