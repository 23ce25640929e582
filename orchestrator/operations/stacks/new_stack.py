"""The request for a new stack, as create, adopt and the preview of both read it."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.errors import StackExists
from orchestrator.operations.adoption.adopt_abandon import Adopted, adoption_request
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.fetching import PausingFetcher
from orchestrator.operations.quotas.room import STACKS
from orchestrator.operations.request_body import StackRequest, read_request
from orchestrator.store.access import idempotency, quotas
from orchestrator.store.access.quotas import Limit
from orchestrator.store.stacks import root_stacks


@dataclass(frozen=True, slots=True)
class NewStack:
    """A request whose name and number of stacks were accepted before its template was validated."""

    request: StackRequest
    adopted: Adopted | None
    limit: Limit | None  # of stacks, to be enforced again by the transaction; None: far from it


def read_new_stack(context: OperationContext, body: Body) -> NewStack:
    """Read the request for a new stack. A refusal because of the project's other stacks precedes validation,
    look-ups in the cloud and credentials: clients branch on it.

    Raises:
        InvalidRequest, InvalidTemplate, NotSupported: the body is malformed.
        StackExists: a live stack of the project has the name.
        LimitExceeded: the project has its maximum number of stacks.
        TokenTaken: another request has used the idempotency token.
    """
    request = read_request(body.read(), PausingFetcher(context.settings))
    limit = _refuse_by_other_stacks(context, request.stack_name)
    if request.adopt_stack_data is None:
        return NewStack(request, None, limit)
    request, adopted = adoption_request(context, request)
    return NewStack(request, adopted, limit)


def _refuse_by_other_stacks(context: OperationContext, name: str) -> Limit | None:
    """Refuse a name that is taken and a stack beyond the quota; return the limit to enforce."""
    project_id, token = context.caller.project_id, context.client_token
    limit = context.require_room(STACKS)
    with context.database.borrow() as db:
        if root_stacks.is_taken(db, project_id, name):
            if token is not None and idempotency.find(db, project_id, token.token) is not None:
                raise idempotency.TokenTaken(token.token)  # by a concurrent repetition of this request
            raise StackExists(name)
        quotas.refuse_full(db, limit)
    return limit
