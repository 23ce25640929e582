"""What lets a stack act for its user when that one is away: a right given at Keystone, one a root stack.

With `auth = keystone` whoever makes a stack gives us a trust or an application credential
(`deferred_auth_method`). It is noted before it is asked for, so that a process which dies on the way leaves
nothing that is not found; no transaction is open meanwhile. An update by another user of the project replaces
it by theirs. It goes with the stack.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.keystone.delegation import (
    Delegation,
    Delegations,
    Giver,
    NotOffered,
    Refused,
    session_of,
    session_with,
)
from orchestrator.config import Settings
from orchestrator.errors import Forbidden, InvalidRequest, Unavailable
from orchestrator.logs import logger
from orchestrator.operations.context import OperationContext
from orchestrator.operations.keystone.cleanup import remove_due
from orchestrator.security.caller import Caller, Login
from orchestrator.security.encryption import Cipher
from orchestrator.security.keystone import service_user
from orchestrator.store.connections.database import Database
from orchestrator.store.keystone import delegated_credentials
from orchestrator.store.stacks.stacks import StackRow

log = logger()

MAKING_SECONDS: Final = 120.0  # from asking for a right to a stack that holds it: longer than any request

Lend = Callable[[], AbstractContextManager[delegated_credentials.Db]]


class MissingCredential(InvalidRequest):
    """A right cannot be given, for want of what it takes."""

    heat_type = "MissingCredentialError"

    def __init__(self, required: str) -> None:
        """Say what it takes, as Heat does."""
        super().__init__(f"Missing required credential: {required}")


@contextmanager
def credential_for_create(context: OperationContext, stack_uuid: uuid.UUID) -> Iterator[int | None]:
    """Have the caller give a right for a stack that is to be made; return its id, None where none is wanted.

    Whoever leaves by an error leaves no right behind.

    Raises:
        Forbidden, MissingCredential: the caller cannot give it.
        Unavailable: Keystone cannot be asked.
    """
    login = _wanted(context)
    made = None if login is None else _make(context, login, stack_uuid, None)
    with _discarded_on_error(context.database, made):
        yield made


@contextmanager
def credential_for_update(context: OperationContext, stack: StackRow) -> Iterator[int | None]:
    """Have the caller give a right in place of the stack's, if that is another user's or there is none.

    Who is of another project, as an admin may be, or cannot give one leaves the stack what it has.
    """
    login, made = _wanted(context), None
    if login is not None and login.project_id == stack.project_id and stack.root_id == stack.id:
        with context.database.borrow() as db:
            now = delegated_credentials.held(db, stack.id)
        if now is None or now.user_id != context.caller.user_id:
            try:
                made = _make(context, login, uuid.UUID(str(stack.uuid)), stack.id)
            except (Forbidden, InvalidRequest, Unavailable) as error:
                log.warning("credentials_not_renewed", stack=str(stack.uuid), error=str(error))
    with _discarded_on_error(context.database, made):
        yield made


def _wanted(context: OperationContext) -> Login | None:
    """Return as whom a right is to be given."""
    settings = context.settings
    deferred = settings.auth == "keystone" and settings.deferred_auth_method != "none"
    return context.caller.login if deferred else None


def _make(context: OperationContext, login: Login, root: uuid.UUID, stack_id: int | None) -> int | None:
    """Return the row of a right that the caller gives; None where Keystone has no such rights."""
    settings, cipher, user_id = context.settings, context.cipher, context.caller.user_id
    method = settings.deferred_auth_method
    assert method != "none"
    secret = secrets.token_urlsafe(32) if method == "application_credential" else ""
    asked = Delegation(method, uuid.uuid4().hex, user_id, secret=secret)
    giver = Giver(user_id, login.project_id, login.token, _roles(settings, login))
    with context.database.borrow() as db:
        sealed = cipher.seal(asked.to_json())
        id_ = delegated_credentials.note(
            db, root, stack_id, login.project_id, user_id, sealed, MAKING_SECONDS
        )
    try:
        with _discarded_on_error(context.database, id_):
            given = Delegations(service_user(settings)).give(
                asked, giver, redelegate=settings.allow_trusts_redelegation
            )
            with context.database.borrow() as db:
                delegated_credentials.made(db, id_, cipher.seal(given.to_json()))
    except Refused as error:
        raise _refusal(settings, str(error)) from error
    except NotOffered:
        log.warning("keystone_offers_no_credentials", method=method)
        return None
    return id_


def _roles(settings: Settings, login: Login) -> list[dict[str, str]]:
    """Return the roles to be given, all of the token's unless the operator says which.

    Raises:
        MissingCredential: the token has not all of those.
    """
    names = [name.strip() for name in settings.trusts_delegated_roles.split(",") if name.strip()]
    if not names:
        return [{"id": id_} for id_ in login.role_ids]
    if missing := sorted(set(names) - set(login.role_names)):
        raise MissingCredential(f"roles {missing}")
    return [{"name": name} for name in names]


def _refusal(settings: Settings, why: str) -> Forbidden:
    what = {"trusts": "a trust", "application_credential": "an application credential"}
    return Forbidden(
        f"Keystone does not let your token give the stack {what[settings.deferred_auth_method]}, by which it "
        f"acts for you later: {why} Tokens of application credentials and trusts may do so only where they "
        "were made for it; sign in with a password."
    )


@contextmanager
def _discarded_on_error(database: Database, id_: int | None) -> Iterator[None]:
    """Have a right removed again when what it was for comes to nothing."""
    try:
        yield
    except BaseException:
        if id_ is not None:
            with database.borrow() as db:
                delegated_credentials.abandon(db, id_)
        raise


def cloud_of_stack(lend: Lend, cipher: Cipher, settings: Settings, root_id: int) -> Cloud | None:
    """Return the cloud as the stacks of a tree call it later, None without Keystone; nothing is read yet."""
    if settings.auth != "keystone":
        return None

    def find() -> Any:
        with lend() as db:
            found = delegated_credentials.held(db, root_id)
        if found is None:
            return None
        return session_of(service_user(settings), Delegation(**cipher.open(found.sealed)))

    return _cloud(settings, find)


def cloud_of_caller(settings: Settings, caller: Caller) -> Cloud | None:
    """Return the cloud as the caller of a request calls it while they wait, None without Keystone."""
    login = caller.login
    if settings.auth != "keystone" or login is None:
        return None
    token = login.token
    return _cloud(settings, lambda: session_with(service_user(settings), token))


def _cloud(settings: Settings, find: Callable[[], Any]) -> Cloud:
    ca_file = settings.keystone_ca_file
    return Cloud(find, settings.region_name, str(ca_file) if ca_file else None)


@dataclass(frozen=True, slots=True)
class CredentialReaper:
    """Removes the rights that are to go, one after the other; several custodians share the work."""

    database: Database
    cipher: Cipher
    settings: Settings

    def run(self) -> int:
        """Remove what is due; return how many are gone."""
        return remove_due(self.database, delegated_credentials, self._remove, "credential")

    def _remove(self, going: delegated_credentials.Going) -> None:
        given = Delegation(**self.cipher.open(going.sealed))
        Delegations(service_user(self.settings)).remove(given)
