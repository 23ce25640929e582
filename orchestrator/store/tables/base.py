"""Building blocks of the tables: PostgreSQL types that SQLAlchemy lacks, enumerations, names of
constraints.
"""

from __future__ import annotations

import datetime as dt
import uuid as uuid_
from collections.abc import Callable

from sqlalchemy import DDL, BigInteger, DateTime, LargeBinary, MetaData, Text, event, func
from sqlalchemy.dialects.postgresql import ARRAY, JSON, UUID
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import UserDefinedType

from orchestrator.engine.output_digests import EARLY, SEPARATOR
from orchestrator.engine.states import (
    NODE_KINDS,
    NODE_STATES,
    OPERATIONS,
    RESOURCE_ACTIONS,
    STATUSES,
)
from orchestrator.json_types import JsonObject


class Xid8(UserDefinedType[int]):
    """PostgreSQL's 64-bit transaction id: orders events for followers
    (docs/internals/protocol.md rule 17).
    """

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        """Name the type in DDL."""
        return "xid8"

    def result_processor(self, dialect: object, coltype: object) -> Callable[[str | None], int | None]:  # noqa: ARG002
        """Convert the driver's text to a number."""
        return lambda value: int(value) if value is not None else None


class EnumText(UserDefinedType[str]):
    """A text from an enumeration: a domain in PostgreSQL.

    A CHECK constraint would cost three times as much: every statement parses its list again.
    """

    cache_ok = True

    def __init__(self, name: str) -> None:
        """Take a name in DOMAINS."""
        self.name = name

    def get_col_spec(self, **_: object) -> str:
        """Name the type in DDL."""
        return self.name


def check_in(column: str, values: tuple[str, ...]) -> str:
    """Return the SQL condition that `column` is one of `values`, which are constants of the code."""
    return f"{column} IN ({_literals(values)})"


def check_not_in(column: str, values: tuple[str, ...]) -> str:
    """Return the SQL condition that `column` is none of `values`, which are constants of the code."""
    return f"{column} NOT IN ({_literals(values)})"


def _literals(values: tuple[str, ...]) -> str:
    return ", ".join(f"'{value}'" for value in values)


# An observation beside operations found that the object of a resource is to be repaired.
IS_SUSPECT = "repair IS NOT NULL"

# A resource was built with other outputs of a requirement than the present ones: `x` is an element of its
# `requires` and `input_digests` (columns id and digest), `q` the row of the requirement, NULL if it is gone.
# A second copy of `engine.output_digests.is_current_input` (docs/internals/protocol.md rule 7).
IS_CHANGED_INPUT = f"""(q.id IS NULL OR q.deposed OR x.digest IS DISTINCT FROM q.value_digest
        AND NOT coalesce(starts_with(x.digest, '{EARLY}') AND string_to_array(x.digest, '{SEPARATOR}')
            <@ string_to_array(q.value_digest, '{SEPARATOR}'), false))"""

DOMAINS = {
    "node_kind": NODE_KINDS,
    "node_state": NODE_STATES,
    "resource_action": RESOURCE_ACTIONS,
    "resource_status": STATUSES,
    "resource_op": OPERATIONS,
}


def create_domain(name: str, values: tuple[str, ...]) -> str:
    """Return the statement that creates a domain."""
    return f"CREATE DOMAIN {name} AS text CONSTRAINT {name}_known CHECK ({check_in('VALUE', values)})"


class Base(DeclarativeBase):
    """Names every constraint, so that a migration can refer to it."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy's own declaration
        int: BigInteger,
        str: Text,
        bytes: LargeBinary,
        dt.datetime: DateTime(timezone=True),
        uuid_.UUID: UUID(as_uuid=True),
        JsonObject: JSON,  # text: the order of keys in a template is kept
        list[str]: ARRAY(Text),
        list[int]: ARRAY(BigInteger),
    }


for _name, _values in DOMAINS.items():
    event.listen(Base.metadata, "before_create", DDL(create_domain(_name, _values)))  # type: ignore[no-untyped-call]

now = func.now()

# For tables with a row per resource, visit or event: dead rows are reused early.
AGGRESSIVE_AUTOVACUUM = {"autovacuum_vacuum_scale_factor": "0.05", "autovacuum_analyze_scale_factor": "0.05"}
