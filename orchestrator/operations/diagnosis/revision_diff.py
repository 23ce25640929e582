"""Compare two revisions of a stack: read both, then call `engine/history/revision_diff.py`.

Large templates are compared in a subprocess (`offload.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.engine.history.revision_diff import Side, as_json, compare
from orchestrator.errors import NotFound
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.context import OperationContext
from orchestrator.operations.runtime.parameter_cache import pseudo_parameters, stored_values
from orchestrator.operations.runtime.sealed_parameters import hidden_defaults
from orchestrator.store.stacks import history, revisions
from orchestrator.store.stacks.revisions import RevisionRow
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.template.functions.time_budget import time_budget
from orchestrator.template.group_template import is_members, load_stored
from orchestrator.template.parse import Limits
from orchestrator.template.template import FaultyTemplate, read

EXPRESSIONS_SECONDS = 20.0  # time budget for the expressions in conditions of both


@time_budget(EXPRESSIONS_SECONDS)
def diff_revisions(context: OperationContext, stack: StackRow, before: int, after: int) -> JsonObject:
    """Return the differences between two revisions, by section.

    Raises:
        NotFound: a revision does not exist.
        InvalidTemplate: the format of a revision is no longer installed.
    """
    first, second = revision(context, stack, before), revision(context, stack, after)
    return as_json(compare(_sections_of(context, stack, first), _sections_of(context, stack, second)))


def revision(context: OperationContext, stack: StackRow, number: int) -> RevisionRow:
    """Return the revision of that number.

    Raises:
        NotFound: it does not exist.
    """
    revision_ = history.numbered(context.database, stack, number)
    if revision_ is None:
        raise NotFound("Revision", str(number))
    return revision_


def size(context: OperationContext, stack: StackRow, *numbers: int) -> int:
    """Return the size of the largest of these revisions' templates, in bytes.

    Raises:
        NotFound: a revision does not exist.
    """
    rows = [revision(context, stack, number) for number in numbers]
    return max(revisions.content_size(context.database, row.template_hash) for row in rows)


def _sections_of(context: OperationContext, stack: StackRow, row: RevisionRow) -> Side:
    pseudo = pseudo_parameters(str(stack.uuid), stack.name, stack.project_id)
    values = stored_values(dict(row.parameters), row.sealed, context.cipher, pseudo)
    text = b"".join(revisions.read_content(context.database, row.template_hash))
    conditions: JsonMapping = {}
    if is_members(text):
        template = load_stored(text, Limits.of_stored(context.settings))
    else:
        draft = read(text, Limits.of_stored(context.settings))
        conditions = draft.sections.conditions()
        try:
            template = draft.define(values)
        except FaultyTemplate as faulty:  # for example of a removed plug-in: the readable part is compared
            template = faulty.rest
    environment = row.environment
    defaults = hidden_defaults(context.cipher, environment, row.sealed)
    declared = {name: _parameter(body, values.get(name)) for name, body in template.written.items()}
    sections: dict[str, JsonMapping] = {
        "general": {
            "version": template.version,
            "description": template.description,
            "parameter_groups": template.parameter_groups,
            "event_sinks": environment.get("event_sinks") or [],
            "encrypted_param_names": environment.get("encrypted_param_names") or [],
        },
        "parameters": declared,
        "parameter_defaults": {**(environment.get("parameter_defaults") or {}), **defaults},
        "resource_registry": environment.get("resource_registry") or {},
        "conditions": conditions,
        "mappings": template.mappings,
        "resources": {name: definition.body for name, definition in template.resources.items()},
        "outputs": {
            name: {"value": output.value, "description": output.description}
            for name, output in template.outputs.items()
        },
        "files": row.files,
    }
    hidden = {name for name, schema in template.parameters.items() if schema.hidden}
    return Side(sections, {*hidden, *defaults, *(environment.get("encrypted_param_names") or ())})


def _parameter(written: object, value: object) -> JsonObject:
    return {"value": value, **(written if isinstance(written, Mapping) else {})}
