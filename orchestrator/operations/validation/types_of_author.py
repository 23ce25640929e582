"""The governed types of a revision and the rights of those whose content it is (operations/adr/0027).

A revision stores the types that its author may not use. Workers refuse them wherever they resolve a type. A
caller who returns to a revision needs the right to each of its types, and takes part in its authorship.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from orchestrator.config import Settings
from orchestrator.engine.validation.denied_types import DeniedTypes
from orchestrator.engine.validation.template import validate_stack
from orchestrator.errors import InvalidTemplate, LimitExceeded
from orchestrator.operations.context import OperationContext
from orchestrator.operations.runtime.parameter_cache import pseudo_parameters, stored_values
from orchestrator.operations.runtime.sealed_parameters import hidden_defaults, opened_environment
from orchestrator.operations.validation.request import EXPRESSIONS_SECONDS, kinds_of, needs_admin
from orchestrator.security.policy import denied_types, policy_of, types_denied_to_any_author, without_admin
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


class ReturnedContent(NamedTuple):
    """What a caller needs who returns to a revision."""

    denied_types: Sequence[str]  # to the next revision: its author's and the caller's
    needs_admin: bool  # a type of the content is reserved to administrators


def needs_check(context: OperationContext, revision: RevisionRow) -> bool:
    """Whether the types of a revision are resolved before a return to it: if the caller perhaps may not use
    one, which is not so if its author could use no more; or if the caller has the roles of an administrator,
    which the content may need.
    """
    stored, roles = revision.denied_types, context.caller.roles
    if stored is None or without_admin(policy_of(context.settings), roles) != tuple(roles):
        return True
    return not types_denied_to(context).rules <= frozenset(stored)


def authorize_return(context: OperationContext, stack: StackRow, revision: RevisionRow) -> ReturnedContent:
    """Check that the caller may return to a revision.

    Raises:
        Forbidden: the caller may not use a type of the revision, in its template or in a nested template.
    """
    needs = needs_check(context, revision) and _resolve_types(context, stack, revision)
    author = denied_to_author(context.settings, revision.denied_types)
    return ReturnedContent((author | types_denied_to(context)).stored(), needs)


@time_budget(EXPRESSIONS_SECONDS)
def _resolve_types(context: OperationContext, stack: StackRow, revision: RevisionRow) -> bool:
    """Resolve the types of a revision as the caller; return whether one is reserved to administrators.

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
        return False
    return needs_admin(kinds)
