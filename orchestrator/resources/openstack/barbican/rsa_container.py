"""OS::Barbican::RSAContainer."""

from __future__ import annotations

from orchestrator.resources.openstack.barbican.container_type import NAME, ContainerType, reference


class RSAContainer(ContainerType):
    """A container for a pair of RSA keys."""

    name = "OS::Barbican::RSAContainer"
    support_version = "6.0.0"
    container_type = "rsa"
    properties = {
        "name": NAME,
        "private_key_ref": reference("the private key"),
        "private_key_passphrase_ref": reference("the passphrase of the private key"),
        "public_key_ref": reference("the public key"),
    }
