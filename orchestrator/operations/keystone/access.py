"""Access of checks to Keystone: the clouds and the users of stacks, with the caches of a process."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cached_property

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.keystone.delegation import MAX_SESSIONS
from orchestrator.clients.keystone.stack_domain import StackDomain
from orchestrator.config import Settings
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.operations.keystone.delegated_credentials import cloud_of_visit
from orchestrator.operations.keystone.stack_users import StackUserProvisioner, configured_domain
from orchestrator.operations.runtime.caches import BoundedCache
from orchestrator.security.encryption import Cipher
from orchestrator.store.connections.database import Database
from orchestrator.store.keystone.removal_queue import Db


class KeystoneAccess:
    """The clouds and the users of stacks. Thread-safe."""

    def __init__(self, database: Database, cipher: Cipher, settings: Settings) -> None:
        """Start with empty caches."""
        self._database, self._cipher, self._settings = database, cipher, settings
        # By the id of the credential's row: it belongs to one tree, and its content never changes.
        self._clouds: BoundedCache[int, Cloud] = BoundedCache(MAX_SESSIONS)

    def cloud(self, root_id: int, credential_id: int | None) -> Cloud | None:
        """Return the cloud with a credential of a tree, None without Keystone. It is read and decrypted on
        use, unless it was used before.
        """
        cloud = None if credential_id is None else self._clouds.get(credential_id)
        if cloud is None:
            cloud = cloud_of_visit(self._borrow, self._cipher, self._settings, root_id, credential_id)
            if cloud is not None and credential_id is not None:
                self._clouds.put(credential_id, cloud)
        return cloud

    def users(self, visit: ResourceVisit, db: Db) -> StackUserProvisioner | None:
        """Return the users of a visited resource's stack, None if no stack domain is configured.

        Raises:
            Misconfigured: the domain's settings are incomplete.
        """
        domain = self._domain
        return (
            None if domain is None else StackUserProvisioner(db, self._cipher, self._settings, domain, visit)
        )

    @cached_property
    def _domain(self) -> StackDomain | None:
        return configured_domain(self._settings)

    def _borrow(self) -> AbstractContextManager[Db]:
        """Lend the connection of the thread that opens a session."""
        return nullcontext(self._database.check_connection(durable=True))
