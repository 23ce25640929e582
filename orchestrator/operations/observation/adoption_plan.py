"""The change of a stack's template that makes the observed state the desired state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from orchestrator.engine.observation.adoption import Adoption, Candidate, adoption
from orchestrator.engine.preview.property_forecast import mentioned
from orchestrator.json_types import JsonObject
from orchestrator.operations.context import OperationContext
from orchestrator.operations.observation.stack_survey import Surveyed
from orchestrator.operations.runtime.parameter_cache import pseudo_parameters, stored_values
from orchestrator.resources.base import Observation
from orchestrator.store.stacks import revisions
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.template.functions.time_budget import time_budget
from orchestrator.template.group_template import is_members, load_stored
from orchestrator.template.parse import Limits
from orchestrator.template.template import Template, read

EXPRESSIONS_SECONDS = 20.0  # time budget for the expressions in conditions


@time_budget(EXPRESSIONS_SECONDS)
def adoption_plan(context: OperationContext, stack: StackRow, deviating: Sequence[Surveyed]) -> JsonObject:
    """Return the patch of the template, the changed template, and the differences that it leaves."""
    revision = revisions.desired(context.database, stack)
    assert revision is not None  # the stack has reached it
    text = b"".join(revisions.read_content(context.database, revision.template_hash))
    limits = Limits.of_stored(context.settings)
    if is_members(text):
        template, document = load_stored(text, limits), {}
    else:
        pseudo = pseudo_parameters(str(stack.uuid), stack.name, stack.project_id)
        values = stored_values(dict(revision.parameters), revision.sealed, context.cipher, pseudo)
        template, document = read(text, limits).define(values), orjson.loads(text)
    keywords = template.form.keywords
    candidates = [_candidate(stack, template, one) for one in deviating]
    return _body(adoption(document, (keywords.resources, keywords.properties), candidates))


def _candidate(stack: StackRow, template: Template, one: Surveyed) -> Candidate:
    visit, standing, recorded = one.visit, one.standing, one.recorded
    own, name = visit.stack.id == stack.id, visit.resource.name
    secrets = recorded.secrets
    names = {difference.property.partition(".")[0] for difference in standing.differences}
    found: Mapping[str, Any] = {}
    if isinstance(one.evidence, Observation):
        found = {n: value for n, value in (one.evidence.properties or {}).items() if n in names}
    definition = visit.definition
    return Candidate(
        one.placed.path,
        name,
        standing.verdict,
        found,
        frozenset(names) if secrets is None else secrets,
        own=own,
        external=definition is not None and definition.body.get("external_id") is not None,
        reason=standing.unknown,
        required_by=_required_by(template, name) if own and standing.fact == "missing" else (),
    )


def _required_by(template: Template, name: str) -> list[str]:
    resources = [other for other, definition in template.resources.items() if name in definition.requires]
    outputs = [f"output {key}" for key, output in template.outputs.items() if mentioned(output.value, [name])]
    return [*resources, *outputs]


def _body(plan: Adoption) -> JsonObject:
    return {
        "patch": list(plan.patch),
        "template": plan.template,
        "left": [{"path": left.path, "reason": left.reason} for left in plan.left],
    }
