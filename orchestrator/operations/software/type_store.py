"""Software configs and deployments for resource types (`ctx.software`): the encrypted rows of
`store/software.py`.

Each method is its own transaction; none is open while a type continues. A change to a deployment by
another caller reaches its resource as a signal: durable, in order, and processed under the resource's lease.
"""

from __future__ import annotations

import datetime as dt
import secrets
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import Any, Final

from orchestrator.config import Settings
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.errors import ProviderChanging, ProviderError
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.context import OperationContext
from orchestrator.operations.masking import masked
from orchestrator.operations.quotas import limits
from orchestrator.operations.quotas.room import (
    LARGE_CONFIGS,
    SOFTWARE_CONFIGS,
    SOFTWARE_DEPLOYMENTS,
    STORED_BYTES,
    Quota,
    require_room,
)
from orchestrator.operations.resource_context.state import SECRET_VALUES, recorded_secrets
from orchestrator.resources.builtin.software_io import judge
from orchestrator.resources.ec2_signatures import new_token
from orchestrator.resources.software_api import (
    Config,
    ConfigDraft,
    Credentials,
    Deployment,
    DeploymentDraft,
    MetadataObject,
    id_of,
)
from orchestrator.resources.stack_context import StackLocation
from orchestrator.security.encryption import Cipher
from orchestrator.store import software as store
from orchestrator.store.access.quotas import Limit, enforce
from orchestrator.store.connections.database import Database
from orchestrator.store.nodes.large_values import LARGE_BYTES
from orchestrator.store.signals import ingest
from orchestrator.store.software import ConfigRow, Db, DeploymentRow
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.template.secret_values import NO_SECRETS, SecretValues, both

CANCELLED: Final = "Deployment cancelled."
CONTENT: Final = ("config", "inputs", "outputs", "options")
CREDENTIALS: Final = frozenset({"deploy_signal_id", "deploy_password"})  # inputs that grant access
RETRY: Final = {"orchestrator": "look again"}  # content of the signals that this module sends

Connect = Callable[[], AbstractContextManager[Db]]


@dataclass(frozen=True, slots=True)
class DeploymentStore:
    """The store for a visit or for a request; `resource_id` and `operation` belong to the visit.

    With `masks`, what it publishes is for a caller who is not the agent of the server: secrets are masked.
    `secrets` returns the secret values of the visited resource, which its secret configs record; None: not
    known. `read_secrets` has the secrets of the configs that the visit has read: what it makes of them is
    secret, too.
    """

    connect: Connect
    database: Database
    cipher: Cipher
    settings: Settings
    place: StackLocation
    stack_id: int | None = None
    resource_id: int | None = None
    traversal: int | None = None
    masks: bool = False
    secrets: Callable[[], SecretValues | None] = lambda: None
    read_secrets: list[SecretValues | None] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        visit: ResourceVisit,
        database: Database,
        cipher: Cipher,
        settings: Settings,
        secrets: Callable[[], SecretValues | None] = lambda: None,
    ) -> DeploymentStore:
        """Return the store for a visit, on the connection of its thread."""
        stack, resource = visit.stack, visit.resource
        place = StackLocation(stack.project_id, stack.name, stack.uuid, resource.name, settings.endpoint)
        return cls(
            lambda: nullcontext(database.check_connection(durable=True)),
            database,
            cipher,
            settings,
            place,
            stack.id,
            resource.id,
            stack.traversal,
            secrets=secrets,
        )

    @classmethod
    def at(
        cls, context: OperationContext, stack: StackRow, name: str = "", *, masks: bool = False
    ) -> DeploymentStore:
        """Return the store for a request about a stack, or about a resource of it."""
        place = StackLocation(stack.project_id, stack.name, str(stack.uuid), name, context.settings.endpoint)
        return cls(
            context.database.connect,
            context.database,
            context.cipher,
            context.settings,
            place,
            stack.id,
            masks=masks,
        )

    # Configs.

    def add_config(self, config_id: str, draft: ConfigDraft, *, secret: bool) -> None:
        """Create a config unless it exists.

        Raises:
            LimitExceeded: the project has the maximum number or size of configs.
        """
        with self.connect() as db, db.transaction():
            if store.get_config(db, self.place.project_id, config_id) is None:
                config = self._config(config_id, draft, secret=secret)
                number = room_for(db, self.settings, SOFTWARE_CONFIGS, self.place.project_id)
                large = large_configs(db, self.settings, config)
                size = _stored_bytes(self, db, len(config["sealed"]))
                store.add_config(db, config)
                enforce(db, number, large, size)

    def config(self, config_id: str) -> Config | None:
        """Return a config, None if it does not exist."""
        with self.connect() as db:
            row = store.get_config(db, self.place.project_id, config_id)
        if row is None:
            return None
        if row.secret and not row.derived:
            self.read_secrets.append(recorded_secrets(self.cipher.open(row.sealed)))
        return opened(self.cipher, row)

    def remove_config(self, config_id: str) -> None:
        """Delete a config; do nothing if it does not exist.

        Raises:
            ProviderError: a deployment refers to it.
        """
        with self.connect() as db, db.transaction():
            removed = store.remove_config(db, self.place.project_id, config_id)
        if removed is False:
            raise ProviderError(referenced(config_id), kind="InvalidRestrictedAction")

    # Deployments.

    def deployment(self, deployment_id: str) -> Deployment | None:
        """Return a deployment, None if it does not exist."""
        with self.connect() as db:
            row = store.get_deployment(db, self.place.project_id, deployment_id)
        if row is None:
            return None
        outputs = self.cipher.open(row.sealed)["output_values"] or {}
        return Deployment(
            row.uuid, row.server_id, row.config_uuid, row.action, row.status, row.status_reason, outputs
        )

    def deploy(self, deployment_id: str, draft: DeploymentDraft, *, secret: bool) -> None:
        """Publish a deployment for its server, in place of its previous config.

        Raises:
            LimitExceeded: the project has the maximum number of deployments.
        """
        operation = self.publication(draft.action)
        with self.connect() as db, db.transaction():
            row = store.get_deployment(db, self.place.project_id, deployment_id, lock=True)
            if row is not None and row.operation == operation:
                return  # done by an earlier attempt
            derived = self._config(str(uuid.uuid4()), draft.config, secret=secret, derived=True)
            before = {} if row is None else self.cipher.open(row.sealed)
            values_sealed = self._values(draft.input_values, before.get("output_values"))
            enforced = [
                large_configs(db, self.settings, derived),
                _stored_bytes(self, db, len(derived["sealed"]) + len(values_sealed)),
            ]
            config_id = store.add_config(db, derived)
            values = {
                "project_id": self.place.project_id,
                "server_id": draft.server_id,
                "config_id": config_id,
                "action": draft.action,
                "status": "IN_PROGRESS" if draft.waits else "COMPLETE",
                "status_reason": "Deploy data available" if draft.waits else "Not waiting for outputs signal",
                "sealed": values_sealed,
                "secret": derived["secret"],
                "stack_id": self.stack_id,
                "resource_id": self.resource_id,
                "operation": operation,
            }
            if row is not None:
                store.write_deployment(db, {**values, "id": row.id})
                store.drop_derived(db, row.config_id)
                enforce(db, *enforced)
                return
            enforced.append(room_for(db, self.settings, SOFTWARE_DEPLOYMENTS, self.place.project_id))
            if not store.add_deployment(db, {**values, "uuid": deployment_id, "stack_user_project_id": None}):
                raise ProviderChanging(f"Deployment {deployment_id} is being created by another request.")
            enforce(db, *enforced)

    def publication(self, action: str) -> str:
        """Return the name of the publication of an action by this visit; the same for every attempt."""
        return f"{self.traversal} {action}"

    def signal(self, deployment_id: str, details: JsonMapping) -> str:
        """Record the result of a deployment that still waits for it; return the event's text.

        Raises:
            ProviderError: the deployment does not exist.
        """
        with self.connect() as db, db.transaction():
            row = store.get_deployment(db, self.place.project_id, deployment_id, lock=True)
            if row is None:
                raise ProviderError(not_found("Deployment", deployment_id), kind="NotFound")
            if details == RETRY:
                return f"deployment {deployment_id} is {row.status}: {row.status_reason}"
            if row.status != "IN_PROGRESS":
                return ""
            config = store.get_config(db, self.place.project_id, row.config_uuid)
            assert config is not None  # guaranteed by a foreign key
            values = self.cipher.open(row.sealed)
            outputs = opened(self.cipher, config).draft.outputs
            verdict = judge(outputs, details, values["output_values"] or {})
            status = "FAILED" if verdict.failed else "COMPLETE"
            kept = self._values(values["input_values"], verdict.outputs)
            self._write(db, row, status=status, status_reason=verdict.reason, sealed=kept)
        return f"deployment {deployment_id} {verdict.summary}"

    def cancel(self, deployment_id: str) -> None:
        """Fail a deployment, and stop waiting for its result."""
        with self.connect() as db, db.transaction():
            row = store.get_deployment(db, self.place.project_id, deployment_id, lock=True)
            if row is not None and row.status == "IN_PROGRESS":
                self._write(db, row, status="FAILED", status_reason=CANCELLED)

    def remove_deployment(self, deployment_id: str) -> None:
        """Delete a deployment with the config derived for it; do nothing if it does not exist."""
        with self.connect() as db, db.transaction():
            row = store.get_deployment(db, self.place.project_id, deployment_id, lock=True)
            if row is not None:
                store.remove_deployment(db, row.id)
                store.drop_derived(db, row.config_id)

    def server_lost(self, deployment_id: str) -> bool:
        """Whether a deployment's server existed when it was last published, and is deleted."""
        with self.connect() as db:
            row = store.get_deployment(db, self.place.project_id, deployment_id)
        return row is not None and row.server_noted and not self.has_server(row.server_id)

    def published(self, server_id: str) -> Sequence[JsonMapping]:
        """Return the configs that a server has to apply, ordered by name."""
        with self.connect() as db:
            rows = store.published(db, self.place.project_id, server_id)
        return [shown(self.cipher, row, in_the_open=not self.masks) for row in rows]

    # Servers and agents.

    def add_server(self, server_id: str) -> None:
        """Record a server; do nothing if it is recorded."""
        self._agent(server_id, is_server=True)

    def has_server(self, server_id: str) -> bool:
        """Whether a server is recorded."""
        with self.connect() as db:
            agent = store.get_agent(db, self.place.project_id, server_id)
        return agent is not None and agent[1]

    def remove_server(self, server_id: str) -> None:
        """Delete the record of a server: its deployments no longer wait for results."""
        with self.connect() as db, db.transaction():
            store.remove_agent(db, self.place.project_id, server_id)
            for stack_id, resource_id in store.lost_server(db, self.place.project_id, server_id):
                signal_resource(db, self.cipher, stack_id, resource_id)

    def credentials(self, thing_id: str) -> Credentials:
        """Return the credentials of a server's or a deployment's agent; create them at the first call."""
        with self.connect() as db:
            agent = store.get_agent(db, self.place.project_id, thing_id)
        return Credentials(**self.cipher.open(agent[0])) if agent else self._agent(thing_id, is_server=False)

    def metadata_object(self, server_id: str) -> MetadataObject | None:
        """Return the object with the metadata of a server, None for other transports."""
        with self.connect() as db:
            found = store.get_agent(db, self.place.project_id, self._metadata_id(server_id))
        return MetadataObject(**self.cipher.open(found[0])) if found else None

    def set_metadata_object(self, server_id: str, place: MetadataObject | None) -> None:
        """Record the object with the metadata of a server."""
        project_id, id_ = self.place.project_id, self._metadata_id(server_id)
        with self.connect() as db, db.transaction():
            store.remove_agent(db, project_id, id_)
            if place is not None:
                store.add_agent(db, project_id, id_, self.cipher.seal(asdict(place)), is_server=False)

    def _metadata_id(self, server_id: str) -> str:
        return id_of(f"{self.place.project_id} metadata of {server_id}")

    def forget(self, thing_id: str) -> None:
        """Revoke the credentials of an agent."""
        with self.connect() as db:
            store.remove_agent(db, self.place.project_id, thing_id)

    def _agent(self, thing_id: str, *, is_server: bool) -> Credentials:
        made = {
            "key": secrets.token_hex(16),
            "secret": secrets.token_hex(32),
            "token": new_token(),
        }
        with self.connect() as db:
            has = store.add_agent(
                db, self.place.project_id, thing_id, self.cipher.seal(made), is_server=is_server
            )
        return Credentials(**self.cipher.open(has))

    # Rows.

    def _config(
        self, config_id: str, draft: ConfigDraft, *, secret: bool, derived: bool = False
    ) -> JsonObject:
        known = reduce(both, self.read_secrets, self.secrets() if secret else NO_SECRETS)
        values = {
            "uuid": config_id,
            "project_id": self.place.project_id,
            "secret": secret or bool(self.read_secrets),
            "derived": derived,
        }
        return {**values, **sealed(self.cipher, draft, known)}

    def _write(self, db: Db, row: DeploymentRow, **changes: object) -> None:
        store.write_deployment(db, {**row.values(), **changes})

    def _values(self, inputs: JsonMapping | None, outputs: JsonMapping | None) -> bytes:
        return self.cipher.seal({"input_values": inputs, "output_values": outputs})


def _stored_bytes(software: DeploymentStore, db: Db, added: int) -> Limit | None:
    """Return the limit of stored bytes that a transaction enforces."""
    project_id = software.place.project_id
    maximum = limits.limit(db, software.settings, project_id, STORED_BYTES.name)
    return require_room(software.database, STORED_BYTES, project_id, maximum, added)


def opened(cipher: Cipher, row: ConfigRow) -> Config:
    """Return a decrypted config."""
    body = cipher.open(row.sealed)
    return Config(row.uuid, ConfigDraft(row.name, row.group, **{name: body[name] for name in CONTENT}))


def sealed(cipher: Cipher, draft: ConfigDraft, secrets: SecretValues | None = None) -> JsonObject:
    """Return a config with encrypted content, and the secret values in it if they are known."""
    body: JsonObject = {name: getattr(draft, name) for name in CONTENT}
    if secrets:
        body[SECRET_VALUES] = sorted(secrets.texts)
    return {"name": draft.name, "group": draft.group, "sealed": cipher.seal(body)}


def shown(cipher: Cipher, row: ConfigRow, *, in_the_open: bool = False) -> JsonObject:
    """Return a config as shown by the API.

    Its servers receive it unmasked. In all other responses the agent's credentials are masked, and the
    secrets of a config that contains any: those that it records, or all of it if it records none.
    """
    draft = opened(cipher, row).draft
    body: JsonObject = {
        "config": draft.config,
        "inputs": draft.inputs,
        "outputs": draft.outputs,
        "options": draft.options,
    }
    if not in_the_open:
        known = recorded_secrets(cipher.open(row.sealed)) if row.secret else None
        hide = _keep if not row.secret else masked if known is None else known.masked
        body["config"], body["options"] = hide(draft.config), hide(draft.options)
        body["inputs"] = [_shown_input(item, hide) for item in draft.inputs]
    return {**listed(row), **body}


def listed(row: ConfigRow) -> JsonObject:
    """Return the fields of a config in a list."""
    head = {"id": row.uuid, "name": row.name, "group": row.group}
    return {**head, "creation_time": isotime(row.created_at)}


def isotime(at: dt.datetime) -> str:
    """Return `YYYY-MM-DDTHH:MM:SSZ`, which is also the format in metadata of servers."""
    return at.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _shown_input(item: JsonMapping, hide: Callable[[object], Any]) -> JsonObject:
    hidden = {name: hide(item[name]) for name in ("value", "default") if name in item}
    if item["name"] in CREDENTIALS and "value" in item:
        hidden["value"] = masked(item["value"])
    return {**item, **hidden}


def _keep(value: object) -> Any:
    return value


def room_for(db: Db, settings: Settings, quota: Quota, project_id: str, added: int = 1) -> Limit | None:
    """Return the limit that a transaction which adds a config or a deployment enforces."""
    maximum = limits.limit(db, settings, project_id, quota.name)
    return require_room(db, quota, project_id, maximum, added)


def large_configs(db: Db, settings: Settings, row: JsonMapping) -> Limit | None:
    """Return the limit on the bytes of large configs that a transaction which adds `row` enforces."""
    size, project_id = len(row["sealed"]), row["project_id"]
    return room_for(db, settings, LARGE_CONFIGS, project_id, size) if size > LARGE_BYTES else None


def signal_resource(db: Db, cipher: Cipher, stack_id: int, resource_id: int) -> None:
    """Signal a resource to check its deployment; the next sweep enqueues it."""
    again = ingest.NewSignal(
        stack_id, resource_id, cipher.seal(RETRY), always=True, ring_seconds=0.0, internal=True
    )
    ingest.accept(db, [again])


def not_found(entity: str, id_: str) -> str:
    """Return Heat's message for a missing config or deployment."""
    return f"{entity} with id {id_} not found"


def referenced(config_id: str) -> str:
    """Return Heat's message for a config that a deployment refers to."""
    return f"Software config with id {config_id} can not be deleted as it is referenced."
