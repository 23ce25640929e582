"""The change of a stack's template that makes the observed state the desired state."""

from __future__ import annotations

from collections import defaultdict
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
from orchestrator.store.observation import groups, verdicts
from orchestrator.store.observation.verdicts import NewDrift
from orchestrator.store.stacks import revisions
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.template.functions.time_budget import time_budget
from orchestrator.template.group_template import is_members, load_stored
from orchestrator.template.parse import Limits
from orchestrator.template.template import Template, read

EXPRESSIONS_SECONDS = 20.0  # time budget for the expressions in conditions


@time_budget(EXPRESSIONS_SECONDS)
def adoption_plan(context: OperationContext, stack: StackRow, deviating: Sequence[Surveyed]) -> JsonObject:
    """Return the patch of the template, the changed template, and the differences that it leaves.

    `recorded`: the differences are known to updates, so that an update with the changed template touches no
    object. Otherwise, as nothing is observed continuously, it has to converge.
    """
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
    plan = adoption(document, (keywords.resources, keywords.properties), candidates)
    return {**_body(plan), "recorded": _record(context, stack, deviating)}


def _record(context: OperationContext, stack: StackRow, deviating: Sequence[Surveyed]) -> bool:
    """Record the differences of the stack's resources as the continuous observation does, so that an update
    knows them; return whether all are recorded.
    """
    changed = [one for one in deviating if one.drift.verdict == "MODIFIED" and one.visit.stack.id == stack.id]
    by_type: dict[str, list[NewDrift]] = defaultdict(list)
    for one in changed:
        item = one.placed.item
        by_type[item.type_name].append(NewDrift(item.id, item.version, one.drift))
    recorded = 0
    with context.database.borrow(hot=False) as db:
        for type_name, found in by_type.items():
            group = groups.of_type(db, stack.project_id, type_name)
            recorded += len(verdicts.record(db, group, found)) if group is not None else 0
    return recorded == len(changed)


def _candidate(stack: StackRow, template: Template, one: Surveyed) -> Candidate:
    visit, drift, recorded = one.visit, one.drift, one.recorded
    own, name = visit.stack.id == stack.id, visit.resource.name
    secrets = recorded.secrets
    names = {difference.property.partition(".")[0] for difference in drift.differences}
    found: Mapping[str, Any] = {}
    if isinstance(one.evidence, Observation):
        found = {n: value for n, value in (one.evidence.properties or {}).items() if n in names}
    definition = visit.definition
    return Candidate(
        one.placed.path,
        name,
        drift.verdict,
        found,
        frozenset(n for n in names if secrets is None or secrets.found_in(recorded.properties.get(n))),
        own=own,
        external=definition is not None and definition.body.get("external_id") is not None,
        reason=drift.unknown,
        required_by=_required_by(template, name) if own and drift.state == "MISSING" else (),
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
