"""Delegated credentials: the right of a stack to act for its user after the request.

With `auth = keystone`, the creator of a stack delegates a trust or an application credential to us
(`deferred_auth_method`). It is recorded before Keystone is asked to create it, so that a process which dies
on the way leaves no unrecorded credential; no transaction is open during the request. An update by another
user of the project replaces the credential. It is removed with the stack.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.keystone.delegation import (
    Delegation,
    Delegations,
    DelegationUnsupported,
    Trustor,
    keystone_session,
    token_session,
)
from orchestrator.clients.keystone.http import Refused
from orchestrator.config import Settings
from orchestrator.errors import Forbidden, InvalidRequest, Unavailable
from orchestrator.logs import logger
from orchestrator.operations.context import OperationContext
from orchestrator.operations.keystone.reaper import Reaper
from orchestrator.security.caller import Caller, Login
from orchestrator.security.encryption import Cipher
from orchestrator.security.keystone import service_user
from orchestrator.store.connections.database import Database
from orchestrator.store.keystone import delegated_credentials as store
from orchestrator.store.keystone.removal_queue import Db
from orchestrator.store.stacks.stacks import StackRow

log = logger()

LOGIN_FAILURE: Final = "AuthorizationFailure: "  # in the reason of a stack

CREATION_SECONDS: Final = 120.0  # from recording a credential to a stack that holds it: exceeds any request

Borrow = Callable[[], AbstractContextManager[Db]]


class MissingCredential(InvalidRequest):
    """The caller lacks a requirement of the delegation."""

    heat_type = "MissingCredentialError"

    def __init__(self, required: str) -> None:
        """Name the requirement, in Heat's words."""
        super().__init__(f"Missing required credential: {required}")


@contextmanager
def credential_for_create(context: OperationContext, stack_uuid: uuid.UUID) -> Iterator[int | None]:
    """Create a credential of the caller for a new stack; yield its id, None if no credential is needed.

    An error in the body discards the credential.

    Raises:
        Forbidden, MissingCredential: the caller cannot delegate it.
        Unavailable: Keystone does not respond.
    """
    login = _delegating_login(context)
    created = None if login is None else _create(context, login, stack_uuid, None)
    with _discarded_on_error(context.database, created):
        yield created


@contextmanager
def credential_for_update(context: OperationContext, stack: StackRow) -> Iterator[int | None]:
    """Create a credential of the caller unless the stack has one of this user that is accepted; yield its id
    or None.

    The stack keeps its credential if the caller is of another project (an admin) or cannot delegate.
    """
    with _renewed(context, stack, _needs_renewal) as renewed:
        yield renewed


@contextmanager
def credential_for_delete(context: OperationContext, stack: StackRow) -> Iterator[int | None]:
    """Create a credential of the caller if the stack has one that is refused; yield its id or None. Otherwise
    the objects of the stack could not be deleted.
    """
    with _renewed(context, stack, _is_refused) as renewed:
        yield renewed


Judge = Callable[[OperationContext, StackRow, store.HeldCredential | None, Db], bool]


def _needs_renewal(
    context: OperationContext, stack: StackRow, current: store.HeldCredential | None, db: Db
) -> bool:
    if current is None or current.user_id != context.caller.user_id:
        return True
    return _is_refused(context, stack, current, db)


def _is_refused(
    _context: OperationContext, stack: StackRow, current: store.HeldCredential | None, db: Db
) -> bool:
    return current is not None and (store.is_refused(db, stack.id) or _has_failed_login(stack))


@contextmanager
def _renewed(context: OperationContext, stack: StackRow, judge: Judge) -> Iterator[int | None]:
    """Yield the id of a new credential if the stack needs it; it is discarded on an error in the body."""
    login, created = _delegating_login(context), None
    if login is not None and login.project_id == stack.project_id and stack.root_id == stack.id:
        with context.database.borrow() as db:
            needed = judge(context, stack, store.held(db, stack.id), db)
        if needed:
            try:
                created = _create(context, login, uuid.UUID(str(stack.uuid)), stack.id)
            except (Forbidden, InvalidRequest, Unavailable) as error:
                log.warning("credential_renewal_failed", stack=str(stack.uuid), error=str(error))
    with _discarded_on_error(context.database, created):
        yield created


def _has_failed_login(stack: StackRow) -> bool:
    """Return whether the stack has failed because Keystone refused its credential."""
    return stack.status == "FAILED" and LOGIN_FAILURE in (stack.status_reason or "")


def _delegating_login(context: OperationContext) -> Login | None:
    """Return the caller's login if stacks need credentials."""
    settings = context.settings
    deferred = settings.auth == "keystone" and settings.deferred_auth_method != "none"
    return context.caller.login if deferred else None


def _create(context: OperationContext, login: Login, root: uuid.UUID, stack_id: int | None) -> int | None:
    """Create a credential of the caller; return its row's id, None if this Keystone does not support them."""
    settings, cipher, user_id = context.settings, context.cipher, context.caller.user_id
    method = settings.deferred_auth_method
    assert method != "none"
    secret = secrets.token_urlsafe(32) if method == "application_credential" else ""
    requested = Delegation(method, uuid.uuid4().hex, user_id, secret=secret)
    trustor = Trustor(user_id, login.project_id, login.token, _delegated_roles(settings, login))
    with context.database.borrow() as db:
        sealed = cipher.seal(requested.to_json())
        id_ = store.insert(db, root, stack_id, login.project_id, user_id, sealed, CREATION_SECONDS)
    try:
        with _discarded_on_error(context.database, id_):
            delegations = Delegations(service_user(settings))
            created = delegations.create(requested, trustor, redelegate=settings.allow_trusts_redelegation)
            with context.database.borrow() as db:
                store.store_created(db, id_, cipher.seal(created.to_json()))
    except Refused as error:
        raise _refusal(settings, str(error)) from error
    except DelegationUnsupported:
        log.warning("application_credentials_unsupported", method=method)
        return None
    return id_


def _delegated_roles(settings: Settings, login: Login) -> list[dict[str, str]]:
    """Return the roles to delegate: those that the operator configured, by default all of the token.

    Raises:
        MissingCredential: the token lacks a configured role.
    """
    names = [name.strip() for name in settings.trusts_delegated_roles.split(",") if name.strip()]
    if not names:
        return [{"id": id_} for id_ in login.role_ids]
    if missing := sorted(set(names) - set(login.role_names)):
        raise MissingCredential(f"roles {missing}")
    return [{"name": name} for name in names]


def _refusal(settings: Settings, reason: str) -> Forbidden:
    kinds = {"trusts": "a trust", "application_credential": "an application credential"}
    return Forbidden(
        f"Keystone does not allow your token to create {kinds[settings.deferred_auth_method]} for the"
        f" stack's later operations: {reason} Tokens of application credentials and trusts may do so only if"
        " they were created with that permission; authenticate with a password."
    )


@contextmanager
def _discarded_on_error(database: Database, id_: int | None) -> Iterator[None]:
    """Discard a credential if the body fails."""
    try:
        yield
    except BaseException:
        if id_ is not None:
            with database.borrow() as db:
                store.discard(db, id_)
        raise


def cloud_of_stack(borrow: Borrow, cipher: Cipher, settings: Settings, root_id: int) -> Cloud | None:
    """Return the cloud as the user of a stack tree, None without Keystone. The credential is read and
    decrypted on first use; a deleted stack has one until its late objects were searched.
    """
    if settings.auth != "keystone":
        return None

    def open_session() -> Any:
        with borrow() as db:
            held = store.held(db, root_id)
            usable = store.going(db, root_id) if held is None else [held]
        delegations = (Delegation(**cipher.open(credential.sealed)) for credential in usable)
        created = next((one for one in delegations if one.trust_id or one.secret), None)
        return None if created is None else keystone_session(service_user(settings), created)

    return _cloud(settings, open_session)


def cloud_of_caller(settings: Settings, caller: Caller) -> Cloud | None:
    """Return the cloud as the caller of the current request, None without Keystone."""
    login = caller.login
    if settings.auth != "keystone" or login is None:
        return None
    return _cloud(settings, lambda: token_session(service_user(settings), login.token, login.contents))


def _cloud(settings: Settings, open_session: Callable[[], object]) -> Cloud:
    ca_file = settings.keystone_ca_file
    return Cloud(open_session, settings.region_name, str(ca_file) if ca_file else None)


def credential_reaper(database: Database, cipher: Cipher, settings: Settings) -> Reaper[bytes]:
    """Return the reaper of delegated credentials."""

    def remove(sealed: bytes) -> None:
        Delegations(service_user(settings)).remove(Delegation(**cipher.open(sealed)))

    return Reaper(database, store.REMOVALS, remove)
