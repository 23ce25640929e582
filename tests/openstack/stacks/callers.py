"""Requests of several users of a project to an installation."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import Any

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.operations.stacks.actions import roll_back
from orchestrator.security.keystone import caller_of
from qa.acceptance.installation import open_cloud
from tests.scenarios.world import World


class Callers(World):
    """An installation with several callers; none is set at first."""

    credentials: Mapping[str, str]  # of the cloud; users have the same password

    @cached_property
    def cleanup(self) -> ExitStack:
        """Removals at the end."""
        return ExitStack()

    def close(self) -> None:
        self.cleanup.close()
        super().close()

    def call_as(self, user: str) -> None:
        """Go on as a user of the project, with a token for a password."""
        self._go_on(open_cloud(self.credentials, user))

    def call_with_credential(self, user: str, *roles: str) -> None:
        """Go on with a token of an application credential of a user, with these roles or all."""
        from keystoneauth1.identity.v3 import ApplicationCredential
        from keystoneauth1.session import Session

        owner = open_cloud(self.credentials, user).session()
        given: dict[str, Any] = {"name": uuid.uuid4().hex, "unrestricted": True}
        if roles:
            given["roles"] = [{"name": role} for role in roles]
        path = f"{self.credentials['OS_AUTH_URL']}/users/{owner.get_user_id()}/application_credentials"
        made = owner.post(path, json={"application_credential": given}).json()["application_credential"]
        self.cleanup.callback(owner.delete, f"{path}/{made['id']}")
        auth = ApplicationCredential(
            self.credentials["OS_AUTH_URL"],
            application_credential_id=made["id"],
            application_credential_secret=made["secret"],
        )
        self._go_on(Cloud(lambda: Session(auth), "RegionOne"))

    def _go_on(self, login: Cloud) -> None:
        session = login.session()
        contents = session.auth.get_access(session)._data["token"]
        self.caller = caller_of(contents, session.get_token())
        self.context = replace(self.context, caller=self.caller)

    def roll_back(self, name: str, number: int) -> None:
        self.messages += roll_back(self.context, self.stack_row(name), number)
