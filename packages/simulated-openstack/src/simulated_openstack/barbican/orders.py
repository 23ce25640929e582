"""Orders: they generate keys after a while."""

from __future__ import annotations

import secrets
from typing import ClassVar, Final

from simulated_openstack.barbican.collection import Collection
from simulated_openstack.barbican.containers import Containers
from simulated_openstack.barbican.secrets import Secrets, secret
from simulated_openstack.http import ApiError
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Service

INVALID: Final = "Provided object does not match schema 'Order'"
GENERATED: Final = "barbican.order"


class Orders(Collection):
    """Orders for keys. The fault `order` lets them fail."""

    path: ClassVar[str] = "orders"
    singular: ClassVar[str] = "order"

    def __init__(self, barbican: Service, containers: Containers, secrets: Secrets) -> None:
        """Add the routes."""
        self._containers, self._secrets = containers, secrets
        super().__init__(barbican)
        barbican.cloud.schedule.register(GENERATED, self._generated)

    def checked(self, call: Call, body: JsonObject) -> JsonObject:
        """Return the values of a new order."""
        del call
        kind, meta = body.get("type"), dict(body.get("meta") or {})
        if kind not in ("key", "asymmetric"):
            raise ApiError(400, f"{INVALID}: '{kind}' is not one of ['asymmetric', 'key'].")
        for name in ("algorithm", "bit_length"):
            if not meta.get(name):
                raise ApiError(400, f"{INVALID}: '{name}' is a required property.")
        return {"type": kind, "meta": meta, "status": "PENDING", "sub_status": "Unknown"}

    def add(self, project_id: str, values: JsonObject) -> JsonObject:
        """Keep a new order, and generate its keys later."""
        row = super().add(project_id, values)
        cloud = self.barbican.cloud
        fault = cloud.faults.action("order", row["meta"].get("name"))
        cloud.schedule.after(cloud.delays.order + fault.delay, GENERATED, row["id"], fault.error)
        return row

    def _generated(self, id_: str, error: str | None) -> None:
        row = self.table.get(id_)
        if row is None:
            return
        if error:
            row |= {"status": "ERROR", "error_status_code": "400", "error_reason": error}
        elif row["type"] == "key":
            row |= {"status": "ACTIVE", "secret_ref": self._secret(row, "symmetric")}
        else:
            names = {"public_key": "public", "private_key": "private"}
            refs = [{"name": name, "secret_ref": self._secret(row, kind)} for name, kind in names.items()]
            values = {"name": row["meta"].get("name"), "type": "rsa", "secret_refs": refs, "consumers": []}
            container = self._containers.add(row["_project"], values)
            row |= {"status": "ACTIVE", "container_ref": self._containers.ref(container)}
        self.table.save(row)

    def _secret(self, row: JsonObject, kind: str) -> str:
        """Generate a secret; return its URL."""
        meta: JsonObject = row["meta"]
        binary = kind == "symmetric"
        content: bytes = secrets.token_bytes(int(meta["bit_length"]) // 8)
        text = f"-----BEGIN {kind.upper()} KEY-----\nsimulated {content.hex()[:32]}\n".encode()
        values = secret({**meta, "secret_type": kind}, content if binary else text, binary=binary)
        store = self._secrets
        return str(store.ref(store.add(row["_project"], values)))
