"""The authority of submitted content: who runs it, and with which credential (operations/adr/0026).

Content runs with the rights of the person who submitted it: a create, an update with content, a rollback or a
restore on request. Other operations on the stack change nothing about that. A delete and a check have the
rights of their caller if the author's credential is not valid any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import UUID

from orchestrator.errors import Forbidden, InvalidRequest, Unavailable
from orchestrator.json_types import JsonObject
from orchestrator.logs import logger
from orchestrator.operations.context import OperationContext
from orchestrator.operations.keystone.delegated_credentials import (
    create_credential,
    discarded_on_error,
    has_admin,
    is_usable,
    roles_to_delegate,
)
from orchestrator.security.caller import Caller, Login
from orchestrator.store.keystone import delegated_credentials as store
from orchestrator.store.keystone.delegated_credentials import HeldCredential
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.traversals.accept import Authority

log = logger()

LOGIN_FAILURE: Final = "AuthorizationFailure: "  # in the reason of a stack


def author_of(caller: Caller) -> JsonObject:
    """Return the record of a revision's author."""
    return {
        "user": caller.user,
        "user_id": caller.user_id,
        "project_id": caller.project_id,
        "roles": sorted(caller.roles),
    }


@contextmanager
def authority_for_create(
    context: OperationContext, stack_uuid: UUID, *, needs_admin: bool
) -> Iterator[Authority]:
    """Create a credential of the caller for a new stack, if stacks need credentials. `needs_admin`: the
    content needs the roles of an administrator.

    An error in the body discards the credential.

    Raises:
        Forbidden, MissingCredential: the caller cannot delegate it.
        Unavailable: Keystone does not respond.
    """
    login = _login(context)
    created = None
    if login is not None:
        created = create_credential(context, login, stack_uuid, needs_admin=needs_admin)
    with discarded_on_error(context.database, created):
        yield Authority(author_of(context.caller), created)


@contextmanager
def authority_for_update(
    context: OperationContext, stack: StackRow, *, needs_admin: bool
) -> Iterator[Authority]:
    """Create a credential of the caller for content that they submit to a stack, unless the stack has one of
    the same user with the same roles. `needs_admin`: the content needs the roles of an administrator.

    An error in the body discards a new credential. A caller who cannot delegate may use a credential that
    they have delegated before, if it has no role that their token lacks.

    Raises:
        Forbidden, MissingCredential: the caller cannot delegate it.
        Unavailable: Keystone does not respond.
    """
    author, created = author_of(context.caller), None
    if stack.root_id != stack.id:
        yield Authority(author, _of_child(context, stack))
        return
    login = _login(context)
    if login is None or login.project_id != stack.project_id:
        _require_none(context, stack, login)
        yield Authority(author)
        return
    used = _own(context, stack, login)
    try:
        roles = roles_to_delegate(context.settings, login, needs_admin=needs_admin)
        if used is None or used.roles != frozenset(roles):
            uuid = UUID(str(stack.uuid))
            created = create_credential(context, login, uuid, stack.id, needs_admin=needs_admin)
            used = None
    except (Forbidden, InvalidRequest, Unavailable) as error:
        if used is None:
            raise
        log.warning("credential_not_renewed", stack=str(stack.uuid), error=str(error))
    with discarded_on_error(context.database, created):
        yield Authority(author, created if used is None else used.id)


@contextmanager
def credential_for_operation(context: OperationContext, stack: StackRow) -> Iterator[int | None]:
    """Create a credential of the caller for a delete or a check of a stack whose own credential is not valid
    any more; yield its id or None. The content keeps its author. Their own credential is tested only after a
    refusal.

    If the caller cannot delegate, the operation has no valid credential. An error in the body discards the
    new credential.
    """
    login, created = _login(context), None
    if login is not None and login.project_id == stack.project_id and stack.root_id == stack.id:
        with context.database.borrow() as db:
            current = store.in_force(db, stack.id)
            own = current is not None and current.user_id == context.caller.user_id
            trusted = own and not (store.is_refused(db, stack.id) or _has_failed_login(stack))
        if current is not None and not trusted and not is_usable(context, current):
            uuid, needs_admin = UUID(str(stack.uuid)), has_admin(context.settings, current)
            try:
                created = create_credential(context, login, uuid, stack.id, needs_admin=needs_admin)
            except (Forbidden, InvalidRequest, Unavailable) as error:
                log.warning("credential_of_operation_failed", stack=str(stack.uuid), error=str(error))
    with discarded_on_error(context.database, created):
        yield created


def _own(context: OperationContext, stack: StackRow, login: Login) -> HeldCredential | None:
    """Return a credential that the caller has delegated to the stack and may use with their token."""
    with context.database.borrow() as db:
        current = store.in_force(db, stack.id)
        is_refused = store.is_refused(db, stack.id) or _has_failed_login(stack)
        held = store.of_user(db, stack.id, context.caller.user_id, login.project_id)
    refused = current.id if is_refused and current is not None else None
    names = frozenset(login.role_names)
    return next((one for one in held if one.id != refused and _is_within(one, names)), None)


def _is_within(credential: HeldCredential, roles: frozenset[str]) -> bool:
    return credential.roles is not None and credential.roles <= roles


def _require_none(context: OperationContext, stack: StackRow, login: Login | None) -> None:
    """Check that a stack has no credential: the caller has none of its project to delegate.

    Raises:
        Forbidden: it has one, with which the caller's content must not run.
    """
    if not _delegates(context):
        return
    with context.database.borrow() as db:
        if not store.holds_any(db, stack.id):
            return
    what = "a token of Keystone" if login is None else "a token of the stack's project"
    raise Forbidden(
        f"The content of a stack runs with the rights of its author, who has to delegate them with {what}."
        f" Authenticate with {what}, or create a stack of your own."
    )


def _of_child(context: OperationContext, stack: StackRow) -> int | None:
    """Return the credential of a nested stack: the whole tree's, which must be the caller's.

    Raises:
        Forbidden: the content of the tree has another author.
    """
    if not _delegates(context):
        return None
    caller, login = context.caller, context.caller.login
    with context.database.borrow() as db:
        own, of_root = store.in_force(db, stack.id), store.in_force(db, stack.root_id)
    if own is None and of_root is None:
        return None
    if (
        own is not None
        and of_root is not None
        and own.id == of_root.id
        and login is not None
        and (own.user_id, own.project_id) == (caller.user_id, login.project_id)
        and _is_within(own, frozenset(login.role_names))
    ):
        return own.id
    raise Forbidden(
        f"Stack {stack.name} is nested in another stack, whose content was submitted by another user, or with"
        " other roles. Update the outermost stack instead."
    )


def _has_failed_login(stack: StackRow) -> bool:
    """Return whether the stack has failed because Keystone refused its credential."""
    return stack.status == "FAILED" and LOGIN_FAILURE in (stack.status_reason or "")


def _delegates(context: OperationContext) -> bool:
    """Return whether stacks need credentials."""
    return context.settings.auth == "keystone" and context.settings.deferred_auth_method != "none"


def _login(context: OperationContext) -> Login | None:
    """Return the caller's login if stacks need credentials."""
    return context.caller.login if _delegates(context) else None
