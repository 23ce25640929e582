"""The users that stacks have at Keystone, to be signalled by: one a resource, in a project of its tree's.

With a stack domain set, a resource that is signalled through Keystone has a user of its own there. User and
project are noted before they are asked for and told apart by their names, so that a process which dies on the
way leaves nothing that is not found; no transaction is open meanwhile. A user goes with its resource, the
project with its root stack.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import Final

from orchestrator.clients.keystone.stack_domain import StackDomain
from orchestrator.config import Settings
from orchestrator.engine.check.visit import Visit
from orchestrator.engine.physical_names import physical_name
from orchestrator.errors import Forbidden, ProviderBusy, ProviderError, Unavailable
from orchestrator.logs import logger
from orchestrator.operations.keystone.cleanup import remove_due
from orchestrator.resources.stack_context import StackUser
from orchestrator.security.encryption import Cipher
from orchestrator.security.keystone import domain_admin
from orchestrator.store.connections.database import Database
from orchestrator.store.keystone import stack_users as store

log = logger()

MAKING_SECONDS: Final = 120.0  # longer than all calls that make one
SEARCH_SECONDS: Final = 60.0  # how often those are looked for whose resource went without a word
LONGEST_NAME: Final = 64  # what every Keystone takes
BEING_REMOVED: Final = "its user at Keystone is being removed"


@dataclass(frozen=True, slots=True)
class StackUserProvisioner:
    """The user of a visited resource, as its type sees it (`ctx.users`); each statement is a transaction."""

    db: store.Db
    cipher: Cipher
    settings: Settings
    domain: StackDomain
    visit: Visit

    @classmethod
    def of(
        cls, visit: Visit, db: store.Db, cipher: Cipher, settings: Settings
    ) -> StackUserProvisioner | None:
        """Return those of a visit, None where stacks have no users at Keystone.

        Raises:
            Misconfigured: not all is set that it takes.
        """
        admin = domain_admin(settings)
        return None if admin is None else cls(db, cipher, settings, StackDomain(admin), visit)

    def make(self) -> StackUser:
        """Return the resource's user, made when first asked for.

        Raises:
            ProviderError: Keystone does not let us.
            ProviderBusy: Keystone cannot be asked now.
        """
        assert self.visit.resource is not None
        try:
            found = store.held(self.db, self.visit.resource.id) or self._made(self._project())
            return to_stack_user(found, self.cipher, self.settings, self.domain)
        except Unavailable as error:
            raise ProviderBusy(str(error), "ServiceUnavailable") from error
        except Forbidden as error:
            raise ProviderError(str(error), "AuthorizationFailure") from error

    def held(self) -> StackUser | None:
        """Return the resource's user if it was made."""
        assert self.visit.resource is not None
        found = store.held(self.db, self.visit.resource.id)
        return None if found is None else to_stack_user(found, self.cipher, self.settings, self.domain)

    def release(self) -> None:
        """Have the resource's user removed when the resource is gone."""
        assert self.visit.resource is not None
        store.release(self.db, self.visit.resource.id)

    def _project(self) -> str:
        """Return the id of the project of the tree's users."""
        stack = self.visit.stack
        uuid, project_id = store.root_of(self.db, stack.root_id)
        name = f"{uuid}-{project_id}"[:LONGEST_NAME]
        noted = self._note(None, name, "")
        id_ = noted.keystone_id
        if id_ is None:
            id_ = self.domain.project(name)
            self._keep(noted, id_, "project", name)
        for one in {stack.root_id, stack.id}:
            store.in_project(self.db, one, id_)
        return id_

    def _made(self, project_id: str) -> store.Held:
        visit = self.visit
        assert visit.resource is not None
        uuid = str(visit.resource.uuid)
        name = physical_name(visit.stack.name, visit.resource.name, uuid, LONGEST_NAME - 1 - len(uuid))
        name = f"{name}-{uuid}"
        noted = self._note(visit.resource.id, name, _password())
        id_ = noted.keystone_id
        if id_ is None:
            id_ = self.domain.user(name, self.cipher.open(noted.sealed), project_id)
            self._keep(noted, id_, "user", name)
        return store.Held(id_, name, noted.sealed, project_id)

    def _note(self, resource_id: int | None, name: str, password: str) -> store.Noted:
        sealed = self.cipher.seal(password)
        noted = store.note(self.db, self.visit.stack.root_id, resource_id, name, sealed, MAKING_SECONDS)
        if noted is None:
            raise ProviderBusy(BEING_REMOVED, "Conflict")
        return noted

    def _keep(self, noted: store.Noted, keystone_id: str, word: str, name: str) -> None:
        """Keep what was made, unless nobody wants it any more: then it is removed again."""
        if not store.made(self.db, noted.id, keystone_id):
            self.domain.remove(word, keystone_id, name)
            raise ProviderBusy(BEING_REMOVED, "Conflict")


@dataclass(frozen=True, slots=True)
class ReadOnlyStackUser:
    """The user of a resource that is only looked at, as its type sees it (`ctx.users`)."""

    user: StackUser | None

    @classmethod
    def of(
        cls, resource_id: int, db: store.Db, cipher: Cipher, settings: Settings
    ) -> ReadOnlyStackUser | None:
        """Return that of a resource, None where stacks have no users at Keystone."""
        admin = domain_admin(settings)
        if admin is None:
            return None
        found = store.held(db, resource_id)
        return cls(None if found is None else to_stack_user(found, cipher, settings, StackDomain(admin)))

    def make(self) -> StackUser:
        """Return the user; none is made for who only looks."""
        if self.user is None:
            raise ProviderBusy("it has no user at Keystone yet", "NotFound")
        return self.user

    def held(self) -> StackUser | None:
        """Return the user if it was made."""
        return self.user


def to_stack_user(user: store.Held, cipher: Cipher, settings: Settings, domain: StackDomain) -> StackUser:
    """Return what it takes to sign in as a user.

    Raises:
        Unavailable: the domain's id is not set, and Keystone cannot be asked for it.
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
    """Return a password that has what password rules ask for."""
    return f"{secrets.token_urlsafe(32)}-aA1"


@dataclass(slots=True)
class StackUserReaper:
    """Removes the users and projects of resources and stacks that are gone, one after the other; several
    share the work.
    """

    database: Database
    settings: Settings
    searched_at: float = field(default=float("-inf"))

    def run(self) -> int:
        """Remove what is due; return how many are gone."""
        admin = domain_admin(self.settings)
        if admin is None:
            return 0
        self._search()
        domain = StackDomain(admin)

        def remove(going: store.Going) -> None:
            domain.remove("project" if going.is_project else "user", going.keystone_id, going.name)

        return remove_due(self.database, store, remove, "stack_user")

    def _search(self) -> None:
        """Now and then look for what went without a word: abandoned, or kept by its deletion policy."""
        if time.monotonic() - self.searched_at >= SEARCH_SECONDS:
            with self.database.borrow() as db:
                store.abandoned(db)
            self.searched_at = time.monotonic()
