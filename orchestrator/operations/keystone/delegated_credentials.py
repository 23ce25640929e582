"""Delegated credentials: the right of a stack to act for its user after the request.

With `auth = keystone`, the author of content delegates a trust or an application credential to us
(`deferred_auth_method`). It is recorded before Keystone is asked to create it, so that a process which dies
on the way leaves no unrecorded credential; no transaction is open during the request. It is removed when no
content of the stack needs it any more. `authority.py` decides who delegates.
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
from orchestrator.security.policy import policy_of, without_admin
from orchestrator.store.connections.database import Database
from orchestrator.store.keystone import delegated_credentials as store
from orchestrator.store.keystone.removal_queue import Db

log = logger()

ALL_ROLES: Final = "*"  # in the setting: all of the token
CREATION_SECONDS: Final = 120.0  # from recording a credential to a stack that holds it: exceeds any request

Borrow = Callable[[], AbstractContextManager[Db]]


class MissingCredential(InvalidRequest):
    """The caller lacks a requirement of the delegation."""

    heat_type = "MissingCredentialError"

    def __init__(self, required: str) -> None:
        """Name the requirement, in Heat's words."""
        super().__init__(f"Missing required credential: {required}")


def create_credential(
    context: OperationContext,
    login: Login,
    root: uuid.UUID,
    stack_id: int | None = None,
    *,
    needs_admin: bool = False,
) -> int | None:
    """Create a credential of the caller for a root stack; return its row's id, None if this Keystone does not
    support them. `needs_admin`: the content needs the roles of an administrator.

    Raises:
        Forbidden, MissingCredential: the caller cannot delegate it.
        Unavailable: Keystone does not respond.
    """
    settings, cipher, user_id = context.settings, context.cipher, context.caller.user_id
    method = settings.deferred_auth_method
    assert method != "none"
    secret = secrets.token_urlsafe(32) if method == "application_credential" else ""
    requested = Delegation(method, uuid.uuid4().hex, user_id, secret=secret)
    roles = roles_to_delegate(settings, login, needs_admin=needs_admin)
    ids = dict(zip(login.role_names, login.role_ids, strict=True))
    trustor = Trustor(user_id, login.project_id, login.token, [{"id": ids[name]} for name in roles])
    with context.database.borrow() as db:
        sealed = cipher.seal(requested.to_json())
        id_ = store.insert(db, root, stack_id, login.project_id, user_id, roles, sealed, CREATION_SECONDS)
    try:
        with discarded_on_error(context.database, id_):
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


def roles_to_delegate(settings: Settings, login: Login, *, needs_admin: bool) -> tuple[str, ...]:
    """Return the names of the roles to delegate: those that the operator configured, by default all of the
    token, without administrators' unless the content needs them.

    Raises:
        MissingCredential: the token lacks a configured role.
    """
    names = [name.strip() for name in settings.trusts_delegated_roles.split(",") if name.strip()]
    if names == [ALL_ROLES] or (needs_admin and not names):
        return login.role_names
    if not names:
        return without_admin(policy_of(settings), login.role_names)
    if missing := sorted(set(names) - set(login.role_names)):
        raise MissingCredential(f"roles {missing}")
    return tuple(names)


def has_admin(settings: Settings, credential: store.HeldCredential) -> bool:
    """Return whether a credential may have roles of an administrator."""
    roles = credential.roles
    return roles is None or len(without_admin(policy_of(settings), sorted(roles))) < len(roles)


def is_usable(context: OperationContext, credential: store.HeldCredential) -> bool:
    """Return whether Keystone accepts a credential; true if it does not respond."""
    delegation = Delegation(**context.cipher.open(credential.sealed))
    try:
        return Delegations(service_user(context.settings)).is_usable(delegation)
    except Unavailable:
        return True


def _refusal(settings: Settings, reason: str) -> Forbidden:
    kinds = {"trusts": "a trust", "application_credential": "an application credential"}
    return Forbidden(
        f"Keystone does not allow your token to create {kinds[settings.deferred_auth_method]} for the"
        f" stack's later operations: {reason} Tokens of application credentials and trusts may do so only if"
        " they were created with that permission; authenticate with a password."
    )


@contextmanager
def discarded_on_error(database: Database, id_: int | None) -> Iterator[None]:
    """Discard a credential if the body fails."""
    try:
        yield
    except BaseException:
        if id_ is not None:
            with database.borrow() as db:
                store.discard(db, id_)
        raise


def cloud_of_stack(borrow: Borrow, cipher: Cipher, settings: Settings, stack_id: int) -> Cloud | None:
    """Return the cloud as the author of a stack's content, or as the caller of its delete; None without
    Keystone. The credential is read and decrypted on first use; a deleted stack has one until its late
    objects were searched.
    """

    def find(db: Db) -> list[store.HeldCredential]:
        held = store.in_force(db, stack_id)
        return store.going(db, stack_id) if held is None else [held]

    return _cloud_of_credential(borrow, cipher, settings, find)


def cloud_of_visit(
    borrow: Borrow, cipher: Cipher, settings: Settings, root_id: int, credential_id: int | None
) -> Cloud | None:
    """Return the cloud with the credential of a visit in a tree of stacks; None without Keystone. The
    credential is read and decrypted on first use.
    """

    def find(db: Db) -> list[store.HeldCredential]:
        found = store.of_visit(db, root_id, credential_id)
        return [] if found is None else [found]

    return _cloud_of_credential(borrow, cipher, settings, find)


def _cloud_of_credential(
    borrow: Borrow, cipher: Cipher, settings: Settings, find: Callable[[Db], list[store.HeldCredential]]
) -> Cloud | None:
    if settings.auth != "keystone":
        return None

    def open_session() -> Any:
        with borrow() as db:
            usable = find(db)
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


def cloud_of_reader(settings: Settings, caller: Caller) -> Cloud | None:
    """Return the cloud as the caller of a request that reads it, None without Keystone. A caller without a
    token of Keystone has no access.
    """
    own = cloud_of_caller(settings, caller)
    return _cloud(settings, lambda: None) if own is None and settings.auth == "keystone" else own


def _cloud(settings: Settings, open_session: Callable[[], object]) -> Cloud:
    ca_file = settings.keystone_ca_file
    return Cloud(open_session, settings.region_name, str(ca_file) if ca_file else None)


def credential_reaper(database: Database, cipher: Cipher, settings: Settings) -> Reaper[bytes]:
    """Return the reaper of delegated credentials."""

    def remove(sealed: bytes) -> None:
        Delegations(service_user(settings)).remove(Delegation(**cipher.open(sealed)))

    return Reaper(database, store.REMOVALS, remove, store.release_all_unused)
