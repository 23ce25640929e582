"""Stack users: a Keystone user for each signalled resource, in a project for each tree of stacks.

They exist if a stack domain is configured. User and project are recorded before Keystone is asked to create
them, and have unique names, so that a process which dies on the way leaves no unrecorded object; no
transaction is open during a request. A user is removed with its resource, the project with the root stack.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Final

from orchestrator.clients.keystone.stack_domain import EntityKind, StackDomain
from orchestrator.config import Settings
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.engine.physical_names import physical_name
from orchestrator.errors import Forbidden, ProviderBusy, ProviderChanging, ProviderError, Unavailable
from orchestrator.operations.keystone.reaper import Reaper
from orchestrator.resources.stack_context import StackUser
from orchestrator.security.encryption import Cipher
from orchestrator.security.keystone import domain_admin
from orchestrator.store.connections.database import Database
from orchestrator.store.keystone import stack_users as store
from orchestrator.store.keystone.removal_queue import Db

CREATION_SECONDS: Final = 120.0  # exceeds the duration of all requests that create one object
MAX_NAME: Final = 64  # characters that every Keystone accepts
BEING_REMOVED: Final = "its user at Keystone is being removed"


def configured_domain(settings: Settings) -> StackDomain | None:
    """Return the stack domain, None if none is configured.

    Raises:
        Misconfigured: its settings are incomplete.
    """
    admin = domain_admin(settings)
    return None if admin is None else StackDomain(admin)


@dataclass(frozen=True, slots=True)
class StackUserProvisioner:
    """The user of a visited resource (`ctx.users`); each statement is its own transaction."""

    db: Db
    cipher: Cipher
    settings: Settings
    domain: StackDomain
    visit: ResourceVisit

    def make(self) -> StackUser:
        """Return the resource's user; create it at the first call.

        Raises:
            ProviderError: Keystone refuses.
            ProviderBusy: Keystone does not respond.
        """
        try:
            user = store.held(self.db, self.visit.resource.id) or self._create_user(self._ensure_project())
            return to_stack_user(user, self.cipher, self.settings, self.domain)
        except Unavailable as error:
            raise ProviderBusy(str(error), "ServiceUnavailable") from error
        except Forbidden as error:
            raise ProviderError(str(error), "AuthorizationFailure") from error

    def held(self) -> StackUser | None:
        """Return the resource's user if it exists."""
        user = store.held(self.db, self.visit.resource.id)
        return None if user is None else to_stack_user(user, self.cipher, self.settings, self.domain)

    def release(self) -> None:
        """Have the user removed once the resource is deleted."""
        store.release(self.db, self.visit.resource.id)

    def _ensure_project(self) -> str:
        """Return the id of the project of the tree's users."""
        stack = self.visit.stack
        uuid, project_id = store.root_of(self.db, stack.root_id)
        name = f"{uuid}-{project_id}"[:MAX_NAME]
        recorded = self._record(None, name, "")
        id_ = recorded.keystone_id
        if id_ is None:
            id_ = self.domain.ensure_project(name)
            self._store_created(recorded, id_, "project", name)
        for stack_id in {stack.root_id, stack.id}:
            store.set_project(self.db, stack_id, id_)
        return id_

    def _create_user(self, project_id: str) -> store.HeldUser:
        visit = self.visit
        uuid = str(visit.resource.uuid)
        name = physical_name(visit.stack.name, visit.resource.name, uuid, MAX_NAME - 1 - len(uuid))
        name = f"{name}-{uuid}"
        recorded = self._record(visit.resource.id, name, _password())
        id_ = recorded.keystone_id
        if id_ is None:
            id_ = self.domain.ensure_user(name, self.cipher.open(recorded.sealed), project_id)
            self._store_created(recorded, id_, "user", name)
        return store.HeldUser(id_, name, recorded.sealed, project_id)

    def _record(self, resource_id: int | None, name: str, password: str) -> store.RecordedUser:
        sealed = self.cipher.seal(password)
        recorded = store.insert(
            self.db, self.visit.stack.root_id, resource_id, name, sealed, CREATION_SECONDS
        )
        if recorded is None:
            raise ProviderChanging(BEING_REMOVED, "Conflict")
        return recorded

    def _store_created(
        self, recorded: store.RecordedUser, keystone_id: str, object_type: EntityKind, name: str
    ) -> None:
        """Store a created object's id; remove the object if its row is already being removed."""
        if not store.store_created(self.db, recorded.id, keystone_id):
            self.domain.remove(object_type, keystone_id, name)
            raise ProviderChanging(BEING_REMOVED, "Conflict")


@dataclass(frozen=True, slots=True)
class ReadOnlyStackUser:
    """The user of a resource that is only observed (`ctx.users`)."""

    user: StackUser | None

    @classmethod
    def of(cls, resource_id: int, db: Db, cipher: Cipher, settings: Settings) -> ReadOnlyStackUser | None:
        """Return the user of a resource, None if no stack domain is configured."""
        domain = configured_domain(settings)
        if domain is None:
            return None
        user = store.held(db, resource_id)
        return cls(None if user is None else to_stack_user(user, cipher, settings, domain))

    def make(self) -> StackUser:
        """Return the user; never create it.

        Raises:
            ProviderChanging: it does not exist yet.
        """
        if self.user is None:
            raise ProviderChanging("it has no user at Keystone yet", "NotFound")
        return self.user

    def held(self) -> StackUser | None:
        """Return the user if it exists."""
        return self.user


def to_stack_user(user: store.HeldUser, cipher: Cipher, settings: Settings, domain: StackDomain) -> StackUser:
    """Return a user with all that signing in requires.

    Raises:
        Unavailable: the domain's id is not configured, and Keystone does not respond.
    """
    return StackUser(
        id=user.keystone_id,
        name=user.name,
        password=cipher.open(user.sealed),
        project_id=user.project_id,
        domain_id=domain.id,
        auth_url=settings.keystone_www_authenticate_url or str(settings.keystone_auth_url),
        region_name=settings.region_name,
    )


def _password() -> str:
    """Return a password that satisfies common password rules."""
    return f"{secrets.token_urlsafe(32)}-aA1"


def stack_user_reaper(database: Database, settings: Settings) -> Reaper[store.RemovableUser] | None:
    """Return the reaper of stack users and their projects, None if no stack domain is configured.

    Raises:
        Misconfigured: the domain's settings are incomplete.
    """
    admin = domain_admin(settings)
    if admin is None:
        return None

    def remove(user: store.RemovableUser) -> None:
        StackDomain(admin).remove("project" if user.is_project else "user", user.keystone_id, user.name)

    return Reaper(database, store.REMOVALS, remove, store.release_unowned)
