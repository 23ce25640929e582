"""The governed types of a revision and the rights of those whose content it is (operations/adr/0027).

A revision stores the types that its author may not use. Workers refuse them wherever they resolve a type. A
caller who returns to a revision needs the right to each of its types, and takes part in its authorship.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.config import Settings
from orchestrator.engine.validation.denied_types import DeniedTypes
from orchestrator.engine.validation.template import validate_stack
from orchestrator.errors import InvalidTemplate, LimitExceeded
from orchestrator.operations.context import OperationContext
from orchestrator.operations.runtime.parameter_cache import pseudo_parameters, stored_values
from orchestrator.operations.runtime.sealed_parameters import hidden_defaults, opened_environment
from orchestrator.operations.validation.request import EXPRESSIONS_SECONDS, kinds_of
from orchestrator.security.policy import denied_types, policy_of, types_denied_to_any_author
from orchestrator.store.stacks import revisions
from orchestrator.store.stacks.revisions import RevisionRow
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.template.functions.time_budget import time_budget
from orchestrator.template.group_template import load_stored
from orchestrator.template.parse import Limits


def denied_to_author(settings: Settings, stored: Sequence[str] | None) -> DeniedTypes:
    """Return the types that the author of a revision may not use. A revision of an older version stores none:
    then these are the types that not every author may use.

    Raises:
        Misconfigured: the policy that such a revision needs is invalid.
    """
    return types_denied_to_any_author(policy_of(settings)) if stored is None else DeniedTypes.of(stored)


def types_denied_to(context: OperationContext) -> DeniedTypes:
    """Return the types that the caller may not use."""
    return denied_types(policy_of(context.settings), context.caller)


def needs_check(context: OperationContext, revision: RevisionRow) -> bool:
    """Whether the caller perhaps may not use a type of a revision: not if its author could use no more."""
    stored = revision.denied_types
    return stored is None or not types_denied_to(context).rules <= frozenset(stored)


def authorize_return(context: OperationContext, stack: StackRow, revision: RevisionRow) -> Sequence[str]:
    """Return the types that are denied to the next revision, if the caller returns to this one: those of its
    author and those of the caller.

    Raises:
        Forbidden: the caller may not use a type of the revision, in its template or in a nested template.
    """
    if needs_check(context, revision):
        _resolve_types(context, stack, revision)
    author = denied_to_author(context.settings, revision.denied_types)
    return (author | types_denied_to(context)).stored()


@time_budget(EXPRESSIONS_SECONDS)
def _resolve_types(context: OperationContext, stack: StackRow, revision: RevisionRow) -> None:
    """Resolve the types of a revision as the caller.

    Raises:
        Forbidden: the caller may not use a type.
    """
    pseudo = pseudo_parameters(str(stack.uuid), stack.name, stack.project_id)
    values = stored_values(dict(revision.parameters), revision.sealed, context.cipher, pseudo)
    sections = {name: part for name, part in revision.environment.items() if name != "parameters"}
    hidden = hidden_defaults(context.cipher, sections, revision.sealed)
    files = {
        name: b"".join(revisions.read_content(context.database, bytes.fromhex(hash_))).decode()
        for name, hash_ in revision.files.items()
    }
    text = b"".join(revisions.read_content(context.database, revision.template_hash))
    try:
        environment = opened_environment(sections, hidden)
        template = load_stored(text, Limits.of_stored(context.settings), values)
        kinds = kinds_of(context, environment, files, depth=stack.depth, fetching=False)
        validate_stack(template, values, kinds, strict=False)  # resolves every type; faults fail the rollback
    except (InvalidTemplate, LimitExceeded):  # its plan fails
        return
