"""Containers of secrets."""

from __future__ import annotations

from typing import ClassVar, Final

from simulated_openstack.barbican.collection import Collection
from simulated_openstack.barbican.secrets import Secrets
from simulated_openstack.http import ApiError
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Service

INVALID: Final = "Provided object does not match schema 'Container'"
NAMES: Final = {
    "rsa": frozenset({"public_key", "private_key", "private_key_passphrase"}),
    "certificate": frozenset({"certificate", "private_key", "private_key_passphrase", "intermediates"}),
}


class Containers(Collection):
    """Containers."""

    path: ClassVar[str] = "containers"
    singular: ClassVar[str] = "container"

    def __init__(self, barbican: Service, secrets: Secrets) -> None:
        """Add the routes."""
        self._secrets = secrets
        super().__init__(barbican)

    def checked(self, call: Call, body: JsonObject) -> JsonObject:
        """Return the values of a new container."""
        kind, refs = body.get("type"), body.get("secret_refs") or []
        if kind not in ("generic", "rsa", "certificate"):
            raise ApiError(400, f"{INVALID}: '{kind}' is not one of ['generic', 'rsa', 'certificate'].")
        names = {one.get("name") for one in refs}
        if len({one.get("secret_ref") for one in refs}) != len(refs):
            raise ApiError(400, f"{INVALID}: Duplicate secret ids are not allowed.")
        if kind in NAMES and not names <= NAMES[kind]:
            raise ApiError(400, f"{INVALID}: only {sorted(NAMES[kind])} reference names are allowed.")
        if kind == "certificate" and "certificate" not in names:
            raise ApiError(400, f"{INVALID}: The minimum required reference name is 'certificate'.")
        for one in refs:
            self._secrets.found(call, str(one.get("secret_ref")).rpartition("/")[2])
        return {"name": body.get("name"), "type": kind, "secret_refs": refs, "consumers": []}
