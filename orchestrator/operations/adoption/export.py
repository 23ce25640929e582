"""A stack as a JSON document that can be adopted (docs/internals/rest-api.md §11.3).

It is written in slices while it is read: memory does not grow with the stack. Secrets are masked, and stored
encrypted under `sealed` at the end: only this installation can decrypt them, for the same project (see
`adopt_abandon.py`). The document of a nested stack replaces its resource's.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import orjson

from orchestrator.engine.check.child_status import split_request
from orchestrator.errors import NotFound
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.masking import masked
from orchestrator.operations.runtime.sealed_parameters import hidden_defaults, hidden_parameters
from orchestrator.security.encryption import Cipher
from orchestrator.store import snapshots
from orchestrator.store.connections.database import Database
from orchestrator.store.snapshots import CopyRow, SnapshotRow
from orchestrator.store.stacks import export as exports
from orchestrator.store.stacks import stacks
from orchestrator.store.stacks.export import ExportRow
from orchestrator.store.stacks.revisions import RevisionRow, desired, of_stack, read_content
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.template.group_template import as_hot, is_members
from orchestrator.template.parameters import MASK
from orchestrator.template.template import Template

NOTHING: Final[JsonMapping] = {}
# Returns the document of a resource's nested stack, None if it has none.
Inner = Callable[[Database, Cipher, StackRow, ExportRow, JsonMapping], Iterator[bytes] | None]


def export(database: Database, cipher: Cipher, stack: StackRow) -> Iterator[bytes]:
    """Yield the document of the current state of a stack.

    Raises:
        NotFound: the stack is deleted.
    """
    revision = desired(database, stack)
    if revision is None or stack.deleted_at is not None:
        raise NotFound("Stack", stack.name)
    return _document(database, cipher, stack, revision, exports.resources(database, stack), _child)


def export_snapshot(
    database: Database, cipher: Cipher, stack: StackRow, snapshot: SnapshotRow
) -> Iterator[bytes]:
    """Yield the document of a stack at a snapshot; copies are part of the resource data."""
    revision = of_stack(database, stack, snapshot.revision_id)
    assert revision is not None
    rows = (_as_exported(copy, cipher) for copy in snapshots.copies(database, snapshot.id))
    then = replace(stack, action="SNAPSHOT", status=snapshot.status)
    return _document(database, cipher, then, revision, rows, None)


def shown_environment(revision: RevisionRow) -> JsonObject:
    """Return a revision's environment with all sections; values of hidden parameters are masked.

    A type that is a template is mapped to itself.
    """
    shown: JsonObject = {
        "parameters": {},
        "parameter_defaults": {},
        "resource_registry": {"resources": {}},
        "encrypted_param_names": [],
        "event_sinks": [],
        **revision.environment,
    }
    schemas = Template.from_outline(revision.outline).parameters
    hidden = {name for name, schema in schemas.items() if schema.hidden}
    hidden.update(shown["encrypted_param_names"] or ())
    hidden.update(name for name, value in revision.parameters.items() if value is None)  # encrypted
    for section in ("parameters", "parameter_defaults"):
        values: JsonMapping = shown[section] or {}
        shown[section] = {
            name: MASK if name in hidden or value is None else value  # None: hidden in a nested template
            for name, value in values.items()
        }
    itself = {name: name for name in revision.outline.get("templates") or ()}  # Heat registers them this way
    shown["resource_registry"] = {**itself, "resources": {}, **(shown["resource_registry"] or {})}
    return shown


def shown_template(database: Database, cipher: Cipher, revision: RevisionRow) -> Iterator[bytes]:
    """Yield a revision's template as stored, or as HOT if a group type generated it; in slices."""
    slices = read_content(database, revision.template_hash)
    first = next(slices, None)
    if first is None:
        return
    if is_members(first):
        opened = hidden_parameters(cipher, revision.sealed)
        values = {**revision.parameters, **opened}
        yield orjson.dumps(as_hot(b"".join([first, *slices]), values, secret=bool(opened)))
        return
    yield first
    yield from slices


def files_json(database: Database, hashes: Mapping[str, str]) -> Iterator[bytes]:
    """Yield a JSON object of files, name to content."""
    yield b"{"
    for number, (name, digest) in enumerate(hashes.items()):
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        yield (b"," if number else b"") + orjson.dumps(name) + b':"'
        for slice_ in read_content(database, bytes.fromhex(digest)):
            # a character split between slices waits for its second half
            yield orjson.dumps(decode(slice_))[1:-1]
        yield orjson.dumps(decode(b"", final=True))[1:-1] + b'"'
    yield b"}"


def _document(
    database: Database,
    cipher: Cipher,
    stack: StackRow,
    revision: RevisionRow,
    rows: Iterator[ExportRow],
    child_of: Inner | None,
    extra: JsonMapping = NOTHING,
) -> Iterator[bytes]:
    """Yield a document; with `child_of`, which returns the documents of nested stacks, it includes secrets.

    `extra` are additional fields, of the resource that the nested stack belongs to.
    """
    yield orjson.dumps({**extra, **_head(stack, revision)})[:-1] + b',"files":'
    yield from files_json(database, revision.files)
    yield b',"template":'
    yield from shown_template(database, cipher, revision)
    yield b',"resources":{'
    secrets: JsonObject = {}
    for number, row in enumerate(rows):
        body, secret = _resource(row, cipher)
        if secret is not None:
            secrets[row.name] = secret
        yield (b"," if number else b"") + orjson.dumps(row.name) + b":"
        nested = child_of(database, cipher, stack, row, body) if child_of and row.child_id else None
        yield from [orjson.dumps(body)] if nested is None else nested
    yield b"}"
    hidden = hidden_parameters(cipher, revision.sealed)
    defaults = hidden_defaults(cipher, revision.environment, revision.sealed)
    if child_of and (secrets or hidden or defaults):
        kept = {"parameters": hidden, "parameter_defaults": defaults, "resources": secrets}
        sealed = cipher.seal({"project_id": stack.project_id, **kept})
        yield b',"sealed":' + orjson.dumps(sealed.decode())
    yield b"}"


def _head(stack: StackRow, revision: RevisionRow) -> JsonObject:
    """Return the fields of a document that precede its large sections."""
    return {
        "name": stack.name,
        "id": str(stack.uuid),
        "action": stack.action,
        "status": stack.status,
        "project_id": stack.project_id,
        "stack_user_project_id": stack.user_project_id,
        "tags": list((revision.settings or {}).get("tags", stack.tags)),
        "environment": shown_environment(revision),
    }


def _resource(row: ExportRow, cipher: Cipher) -> tuple[JsonObject, JsonObject | None]:
    """Return a resource's document, and the decrypted values of its masked fields if there are any."""
    resource_data, metadata = split_request(row.data or {})[1], row.metadata or {}
    secret = None
    if row.sealed is not None:
        opened = cipher.open(row.sealed)
        metadata = row.metadata or opened.get("metadata") or {}
        resource_data = split_request(opened.get("data") or {})[1]
        secret = {"resource_data": resource_data, "metadata": metadata}
        resource_data, metadata = masked(resource_data), masked(metadata)
    body = {
        "name": row.name,
        "resource_id": row.physical_id,
        "type": row.type,
        "action": row.action,
        "status": row.status,
        "metadata": metadata,
        "resource_data": resource_data,
    }
    return body, secret


def _child(
    database: Database, cipher: Cipher, stack: StackRow, row: ExportRow, body: JsonMapping
) -> Iterator[bytes] | None:
    """Return the document of a nested stack, which replaces its resource's."""
    child = stacks.child(database, stack, row.child_id or 0)
    revision = None if child is None else desired(database, child)
    if child is None or revision is None:
        return None
    extra = {name: body[name] for name in ("resource_id", "type", "metadata", "resource_data")}
    return _document(database, cipher, child, revision, exports.resources(database, child), _child, extra)


def _as_exported(copy: CopyRow, cipher: Cipher) -> ExportRow:
    """Return a snapshot's resource; its copy is merged into its data."""
    kept = cipher.open(copy.kept) if copy.kept else {}
    data, sealed = copy.data, copy.sealed
    if sealed is None:
        data = {**(data or {}), **kept}
    elif kept:
        opened = cipher.open(sealed)
        sealed = cipher.seal({**opened, "data": {**(opened.get("data") or {}), **kept}})
    return ExportRow(
        copy.name, copy.type, copy.physical_id, copy.action, copy.status, copy.metadata, data, sealed
    )
