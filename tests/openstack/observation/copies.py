"""Copies of stacks with their objects in the simulated cloud: thousands of servers in seconds.

Stacks are created through the engine once; a copy has the same rows, with its own ids, names and digests.
`test_copies.py` compares a copy with a created stack.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from orchestrator.engine.physical_names import physical_name, short_id
from orchestrator.json_types import JsonObject
from orchestrator.operations.resource_context.state import ResourceState, output_digest
from orchestrator.resources.base import ResourceType
from orchestrator.template.group_template import PARAMETER, Definition, is_members
from tests.openstack.observation.observed_world import ObservedWorld

TREE: Final = "SELECT id FROM stack WHERE root_id = %(root)s"
# In the order of their references, with the columns of ids: of rows of which table.
TABLES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "stack": (
        "id",
        {
            "id": "stack",
            "root_id": "stack",
            "owner_id": "stack",
            "parent_resource_id": "resource",
            "revision_id": "revision",
            "good_revision_id": "revision",
            "credential_id": "credential",
        },
    ),
    "revision": (
        "stack_id",
        {"id": "revision", "stack_id": "stack", "credential_id": "credential"},
    ),
    "resource_definition": ("stack_id", {"id": "resource_definition", "stack_id": "stack"}),
    "resource": (
        "stack_id",
        {
            "id": "resource",
            "stack_id": "stack",
            "definition_id": "resource_definition",
            "requires": "resource",
        },
    ),
    "credential": ("stack_id", {"id": "credential", "stack_id": "stack"}),
}
NO_COPIES: Final = ("keystone.", "pending_change")  # kinds of the cloud's objects
TOKEN: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}|[0-9a-f]{24}"
    r"|\b[a-z2-7]{12}\b"
)

CUT: Final = "@@-"  # beginning of a shortened name

Objects = set[tuple[str, str]]


def objects_of(world: ObservedWorld) -> Objects:
    """Return kinds and ids of all objects in the cloud."""
    return {(kind, row["id"]) for kind, row in _cloud_rows(world)}


class Prototype:
    """A complete stack, to be copied."""

    def __init__(self, world: ObservedWorld, name: str, earlier: Objects) -> None:
        """Read the stack `name`; `earlier` are the objects that existed before its create."""
        self._world, self._name = world, name
        self._db = world.db
        root = world.stack_row(name).id
        self._rows = {table: self._read(table, column, root) for table, (column, _) in TABLES.items()}
        assert not any(row["sealed"] for row in self._rows["resource"]), "secrets are not copied"
        self.objects = objects_of(world) - earlier
        cut = self._shortened_names()
        self._text = {table: _marked(orjson.dumps(rows).decode(), cut) for table, rows in self._rows.items()}
        self._templates = {
            row["template_hash"]: _marked(self._content(row["template_hash"]), cut)
            for row in self._rows["revision"]
        }
        self._objects = [
            (kind, _marked(orjson.dumps(row).decode(), cut))
            for kind, row in _cloud_rows(world)
            if (kind, row["id"]) in self.objects
        ]
        self._ids = {id_ for _, id_ in self.objects}
        self._ids |= {row["uuid"] for table in ("stack", "resource") for row in self._rows[table]}

    def copy(self, name: str) -> None:
        """Write a copy of the rows and of the objects, with this name."""
        words = {old: str(uuid.uuid4()) for old in self._ids}
        words |= {short_id(row["uuid"]): short_id(words[row["uuid"]]) for row in self._rows["resource"]}
        words |= {old.replace("-", ""): new.replace("-", "") for old, new in words.items()}
        words |= dict(self._digests(words, name))
        words |= dict(self._member_digests(words, name))
        numbers = {table: self._new_ids(table, rows) for table, rows in self._rows.items()}
        with self._db.transaction():
            for table, (_, references) in TABLES.items():
                rows = orjson.loads(self._replaced(self._text[table], words, name))
                for row in rows:
                    _renumber(row, references, numbers)
                if table == "revision":
                    self._write_templates(rows, words, name)
                self._write(table, rows)
        ports = self._world.cloud.neutron.ports
        for kind, text in self._objects:
            row = orjson.loads(self._replaced(text, words, name))
            self._world.cloud.state.table(kind).save(row)
        for id_ in [words[old] for kind, old in self.objects if kind == "neutron.port"]:
            ports.apply(ports.found(id_), {})  # its addresses are in use

    def _shortened_names(self) -> set[str]:
        """Return the names of objects that are too long for their type."""
        stacks, found = {row["id"]: row["name"] for row in self._rows["stack"]}, set()
        for row in self._rows["resource"]:
            limit = getattr(self._type(row), "physical_name_limit", None)
            parts = stacks[row["stack_id"]], row["name"], row["uuid"]
            if limit is not None and len(physical_name(*parts)) > limit:
                found.add(physical_name(*parts, limit))
        return found

    def _digests(self, words: Mapping[str, str], name: str) -> Iterator[tuple[str, str]]:
        """Yield the digests of outputs with the copy's."""
        copies = orjson.loads(self._replaced(self._text["resource"], words, name))
        for row, new in zip(self._rows["resource"], copies, strict=True):
            type_ = self._type(row)
            live = frozenset() if type_ is None else type_.live_attributes
            early = frozenset() if type_ is None else type_.early_attributes
            known = dict(zip(_outputs(row, live, early), _outputs(new, live, early), strict=True))
            parts = set(TOKEN.findall(row["value_digest"] or ""))
            assert parts <= known.keys(), f"an unknown digest of {row['name']}"
            yield from known.items()

    def _member_digests(self, words: Mapping[str, str], name: str) -> Iterator[tuple[str, str]]:
        """Yield the digests of the definitions of members with the copy's."""
        for row in self._rows["revision"]:
            template = self._templates[row["template_hash"]]
            for part in orjson.loads(template)["parts"] if is_members(template) else ():
                value = row["parameters"][PARAMETER][part["digest"]]
                body = orjson.loads(self._replaced(orjson.dumps(value).decode(), words, name))
                yield part["digest"], Definition(part["type"], body, body.pop("index_var", None)).digest

    def _type(self, row: JsonObject) -> ResourceType | None:
        return self._world.types.get(row["runs_as"] or row["type"])

    def _read(self, table: str, column: str, root: int) -> list[JsonObject]:
        query = f"SELECT row_to_json(t)::text FROM {table} t WHERE {column} IN ({TREE}) ORDER BY id"
        return [orjson.loads(text) for (text,) in self._db.execute(query, {"root": root})]

    def _content(self, digest: str) -> str:
        found = self._db.execute("SELECT body FROM content WHERE hash = %s::bytea", (digest,)).fetchone()
        assert found is not None
        return bytes(found[0]).decode()

    def _new_ids(self, table: str, rows: Iterable[JsonObject]) -> dict[int, int]:
        old = [row["id"] for row in rows]
        query = f"SELECT nextval(pg_get_serial_sequence('{table}', 'id')) FROM generate_series(1, %s)"
        return dict(zip(old, (id_ for (id_,) in self._db.execute(query, (len(old),))), strict=True))

    def _write_templates(self, revisions: list[JsonObject], words: Mapping[str, str], name: str) -> None:
        """Write the templates of the copy: a group's contains ids of other resources."""
        for row in revisions:
            body = self._templates[row["template_hash"]]
            changed = self._replaced(body, words, name).encode()
            row["template_hash"] = f"\\x{hashlib.sha256(changed).hexdigest()}"
            self._db.execute(
                "INSERT INTO content (hash, body) VALUES (%s::bytea, %s) ON CONFLICT DO NOTHING",
                (row["template_hash"], changed),
            )

    def _write(self, table: str, rows: list[JsonObject]) -> None:
        self._db.execute(
            f"INSERT INTO {table} OVERRIDING SYSTEM VALUE"
            f" SELECT * FROM json_populate_recordset(NULL::{table}, %s::json)",
            (orjson.dumps(rows).decode(),),
        )

    def _replaced(self, text: str, words: Mapping[str, str], name: str) -> str:
        text = TOKEN.sub(lambda found: words.get(found[0], found[0]), text)
        return text.replace(self._name, name).replace(CUT, f"{name[:2]}-")


def _marked(text: str, names: Iterable[str]) -> str:
    """Mark the beginning of shortened names: it is the beginning of the stack's name."""
    for name in names:
        if name in text:
            text = text.replace(name, CUT + name[3:])
    return text


def _outputs(row: JsonObject, live: frozenset[str], early: frozenset[str]) -> list[str]:
    """Return the digest of the outputs of a resource, and its parts for early dependents."""
    attributes = row["attributes"] or {}
    some = {key: value for key, value in attributes.items() if key in early}
    states = (
        ResourceState(physical_id=row["physical_id"], reference_id=row["reference_id"], attributes=chosen)
        for chosen in (attributes, {}, some)
    )
    return [output_digest(state, live) for state in states]


def _renumber(row: JsonObject, references: Mapping[str, str], numbers: Mapping[str, Any]) -> None:
    for column, table in references.items():
        value = row[column]
        if isinstance(value, list):
            row[column] = [numbers[table][id_] for id_ in value]
        elif value is not None:
            row[column] = numbers[table][value]


def _cloud_rows(world: ObservedWorld) -> Iterator[tuple[str, JsonObject]]:
    world.cloud.schedule.run_due()
    for kind, table in world.cloud.state._tables.items():
        if not kind.startswith(NO_COPIES):
            yield from ((kind, row) for row in table)
