"""The objects of the cloud, in memory, and their copy in a storage.

A `Table` holds the objects of a kind by id, in the order of their creation. A changed object is written with
`Table.save`. `State.commit` writes the changes of a request to the storage.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from simulated_openstack.json_types import JsonObject
from simulated_openstack.storage import Storage


class Table:
    """The objects of a kind. `indexes` names fields with quick look-ups."""

    def __init__(self, state: State, kind: str, indexes: tuple[str, ...]) -> None:
        """Start empty."""
        self._state, self.kind = state, kind
        self._rows: dict[str, JsonObject] = {}
        self._keys: dict[str, dict[str, Any]] = {
            name: {} for name in indexes
        }  # the indexed values of each id
        self._index: dict[str, dict[Any, dict[str, JsonObject]]] = {name: {} for name in indexes}

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._rows)

    def __iter__(self) -> Iterator[JsonObject]:
        """Yield the objects, oldest first."""
        return iter(list(self._rows.values()))

    def get(self, id_: str) -> JsonObject | None:
        """Return an object, or None."""
        return self._rows.get(id_)

    def where(self, field: str, value: Any) -> list[JsonObject]:
        """Return the objects with a value of an indexed field."""
        return list(self._index[field].get(value, {}).values())

    def count(self, field: str, value: Any) -> int:
        """Return the number of objects with a value of an indexed field."""
        return len(self._index[field].get(value, ()))

    def save(self, row: JsonObject) -> JsonObject:
        """Keep a new or changed object; return it."""
        id_ = row["id"]
        self._rows[id_] = row
        for name, by_value in self._index.items():
            value, before = row.get(name), self._keys[name].get(id_, _NOTHING)
            if value != before:
                self._forget(name, id_, before)
                self._keys[name][id_] = value
            by_value.setdefault(value, {})[id_] = row
        self._state.changed(self.kind, id_, row)
        return row

    def remove(self, id_: str) -> None:
        """Remove an object."""
        if self._rows.pop(id_, None) is not None:
            for name, keys in self._keys.items():
                self._forget(name, id_, keys.pop(id_, _NOTHING))
            self._state.changed(self.kind, id_, None)

    def _forget(self, name: str, id_: str, value: Any) -> None:
        ids = self._index[name].get(value)
        if ids is not None:
            ids.pop(id_, None)
            if not ids:
                del self._index[name][value]


_NOTHING: Final = object()


class State:
    """All tables, and their copy in the storage; without one they are lost with the process."""

    def __init__(self, storage: Storage | None = None) -> None:
        """Read the stored objects."""
        self._tables: dict[str, Table] = {}
        self._dirty: dict[tuple[str, str], JsonObject | None] = {}
        self._storage = storage
        self._stored: dict[str, list[JsonObject]] = {}
        for kind, row in () if storage is None else storage.load():
            self._stored.setdefault(kind, []).append(row)

    def table(self, kind: str, *indexes: str) -> Table:
        """Return the table of a kind; the first call names its indexes."""
        if kind not in self._tables:
            self._tables[kind] = table = Table(self, kind, indexes)
            for row in self._stored.pop(kind, ()):
                table.save(row)
                self._dirty.pop((kind, row["id"]), None)
        return self._tables[kind]

    def changed(self, kind: str, id_: str, row: JsonObject | None) -> None:
        """Remember an object for the next commit; None: it was removed."""
        if self._storage is not None:
            self._dirty[kind, id_] = row

    def commit(self) -> None:
        """Write the changed objects to the storage; the next commit repeats a failed one."""
        if self._storage is not None and self._dirty:
            self._storage.write(self._dirty)
            self._dirty.clear()

    def close(self) -> None:
        """Commit, and close the storage."""
        if self._storage is not None:
            self.commit()
            self._storage.close()
            self._storage = None
