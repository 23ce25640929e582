"""Tables of software configuration (docs/internals/rest-api.md §12): configs, deployments, credentials of
agents.

The contents of configs and deployments are always encrypted, since scripts and input values usually hold
secrets.
"""

from __future__ import annotations

import datetime as dt
import uuid as uuid_

from sqlalchemy import ForeignKey, Identity, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.store.tables.base import Base, now

LARGE = "octet_length(sealed) > 65536"  # a config that counts towards the limit on bytes


class SoftwareConfig(Base):
    """A config, never changed. `secret`: it contains a secret, and responses mask it."""

    __tablename__ = "software_config"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    uuid: Mapped[uuid_.UUID] = mapped_column(unique=True)
    project_id: Mapped[str]
    name: Mapped[str | None]
    group: Mapped[str | None]
    sealed: Mapped[bytes]  # config, inputs, outputs, options
    secret: Mapped[bool] = mapped_column(server_default=text("false"))
    derived: Mapped[bool] = mapped_column(server_default=text("false"))  # deleted with its deployment
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)

    __table_args__ = (
        Index("ix_software_config_project", "project_id", "created_at", "id"),
        Index("ix_software_config_large", "project_id", postgresql_where=text(LARGE)),
    )


class SoftwareDeployment(Base):
    """The work of a server, pending or done; of a resource, if created by it."""

    __tablename__ = "software_deployment"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    uuid: Mapped[uuid_.UUID] = mapped_column(unique=True)
    project_id: Mapped[str]
    server_id: Mapped[str]
    config_id: Mapped[int] = mapped_column(ForeignKey("software_config.id"))
    action: Mapped[str | None]
    status: Mapped[str | None]
    status_reason: Mapped[str | None]
    stack_user_project_id: Mapped[str | None]
    sealed: Mapped[bytes]  # input_values, output_values
    secret: Mapped[bool] = mapped_column(server_default=text("false"))
    stack_id: Mapped[int | None]
    resource_id: Mapped[int | None]
    operation: Mapped[str | None]  # the resource's operation that published it: each operation does so once
    server_noted: Mapped[bool] = mapped_column(server_default=text("false"))  # at the time of publication
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    updated_at: Mapped[dt.datetime | None]

    __table_args__ = (
        Index("ix_software_deployment_server", "project_id", "server_id"),
        Index("ix_software_deployment_config_id", "config_id"),
    )


class SoftwareAgent(Base):
    """Credentials for the agent of a server or a deployment, and the known servers."""

    __tablename__ = "software_agent"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    uuid: Mapped[uuid_.UUID] = mapped_column(unique=True)  # of the server or the deployment
    project_id: Mapped[str]
    is_server: Mapped[bool] = mapped_column(server_default=text("false"))
    sealed: Mapped[bytes]  # key, secret, token
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
