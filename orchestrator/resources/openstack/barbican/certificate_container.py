"""OS::Barbican::CertificateContainer."""

from __future__ import annotations

from orchestrator.resources.openstack.barbican.container_type import NAME, ContainerType, reference


class CertificateContainer(ContainerType):
    """A container for the secrets of a certificate."""

    name = "OS::Barbican::CertificateContainer"
    support_version = "6.0.0"
    container_type = "certificate"
    properties = {
        "name": NAME,
        "certificate_ref": reference("the certificate"),
        "private_key_ref": reference("the private key"),
        "private_key_passphrase_ref": reference("the passphrase of the private key"),
        "intermediates_ref": reference("the intermediate certificates"),
    }
