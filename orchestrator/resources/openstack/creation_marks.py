"""How the object of a create request without an answer is found, by kind of service.

Most services store a request token with the object. Neutron has no field for it, and networks accept no tags
in a POST: the token is the end of the description, which can be set in a POST and searched. Where nothing can
store it, the values of the object identify it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.errors import ProviderNotFound
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Value
from orchestrator.resources.openstack.collection_type import CollectionType, CreationMark
from orchestrator.resources.openstack.creation_times import is_created_by

MAX_DESCRIPTION: Final = 255  # characters
TAG_PREFIX: Final = "stack-orchestrator:"  # of the tag with the request token
_MARK: Final = re.compile(r" ?\(stack-orchestrator:([^ ;)]+)(?:; addresses ([^)]*))?\)$")


class TokenInDescription(CreationMark):
    """The token is the end of the description."""

    key = "description"

    def marked(self, values: JsonObject, token: str) -> JsonObject:
        """Return the attributes with the token."""
        return {**values, "description": marked(values.get("description") or "", token)}

    def kept(self, current: JsonMapping, value: Value) -> Value:
        """Return a new description with the token of the object."""
        return described(current.get("description"), value or "")

    def unmarked(self, actual: JsonMapping) -> JsonObject:
        """Return an object without the token."""
        if "description" not in actual:
            return dict(actual)
        return {**actual, "description": unmarked(actual["description"])}

    def find(self, type_: CollectionType, ctx: Context, token: str) -> Sequence[str]:
        """Return the objects whose description ends with the token."""
        api, collection = type_.api(ctx), type_.collection
        specs = ctx.properties.get("value_specs") or {}
        exact = marked(str(ctx.properties.get("description") or specs.get("description") or ""), token)
        found = [found["id"] for found in api.search(collection, description=exact, fields=("id",))]
        if not found and exact != marked("", token):  # the description may have changed since
            found = [
                found["id"]
                for found in api.search(collection, fields=("id", "description"))
                if str(found.get("description") or "").endswith(marked("", token))
            ]
        return found


@dataclass(frozen=True, slots=True)
class TokenInTags(CreationMark):
    """The token is one of the tags. The search is restricted to equal values of the properties `filters`."""

    filters: tuple[str, ...] = ()
    key = "tags"

    def marked(self, values: JsonObject, token: str) -> JsonObject:
        """Return the attributes with the token."""
        return {**values, "tags": tags(token, values.get("tags"))}

    def kept(self, current: JsonMapping, value: Value) -> Value:
        """Return new tags with the token of the object."""
        return changed_tags(current, value)

    def unmarked(self, actual: JsonMapping) -> JsonObject:
        """Return an object without the token."""
        return {**actual, "tags": own_tags(actual)}

    def find(self, type_: CollectionType, ctx: Context, token: str) -> Sequence[str]:
        """Return the objects with the token."""
        tag, parent = token_tag(token), type_.parent(ctx, ctx.properties)
        query = type_.request_values(ctx, ctx.properties, self.filters) or {"tags": tag}
        return [
            str(item[type_.collection.id_key])
            for item in type_.api(ctx).search(type_.collection, parent=parent, **query)
            if tag in (item.get("tags") or ())
            and all(item.get(key) == value for key, value in query.items() if key != "tags")
        ]


@dataclass(frozen=True, slots=True)
class TokenInAttribute(CreationMark):
    """The token is an attribute: the service stores attributes that it does not know. The search is
    restricted to equal values of the properties `filters`.
    """

    attribute: str
    filters: tuple[str, ...] = ()

    def marked(self, values: JsonObject, token: str) -> JsonObject:
        """Return the attributes with the token."""
        return {**values, self.attribute: token}

    def unmarked(self, actual: JsonMapping) -> JsonObject:
        """Return an object without the token."""
        return {name: value for name, value in actual.items() if name != self.attribute}

    def find(self, type_: CollectionType, ctx: Context, token: str) -> Sequence[str]:
        """Return the objects with the token."""
        values = type_.request_values(ctx, ctx.properties, self.filters)
        query = {name: value for name, value in values.items() if value}
        found = type_.api(ctx).search(type_.collection, **query)
        return [str(item[type_.collection.id_key]) for item in found if item.get(self.attribute) == token]

    def stored(self, type_: CollectionType, token: str) -> JsonObject:
        """Return the token, of types that check the owner."""
        return {"token": token} if type_.checks_owner else {}

    def is_own(self, type_: CollectionType, ctx: Context, actual: JsonMapping) -> bool:
        """Return whether an object has the stored token."""
        return ctx.data.get("token") in (None, actual.get(self.attribute))


@dataclass(frozen=True, slots=True)
class EqualValues(CreationMark):
    """The values of properties identify the object: those that restrict the list, and others. Only one object
    is found: a further object may belong to another user.
    """

    filters: tuple[str, ...] = ("name",)
    compared: tuple[str, ...] = ()
    is_new: bool = False  # the object must not be older than the operation
    in_project: bool = False  # the list is restricted to the project
    unused: str = ""  # an attribute that is empty as long as nothing uses the object

    def find(self, type_: CollectionType, ctx: Context, token: str) -> Sequence[str]:
        """Return the object with the values."""
        collection, parent = type_.collection, type_.parent(ctx, ctx.properties)
        if type_.parent_property and not parent:
            return []
        wanted = type_.request_values(ctx, ctx.properties, {*self.filters, *self.compared})
        query = {key: wanted[key] for name in self.filters if (key := type_.layout[name].key) in wanted}
        project = ctx.properties.get("tenant_id") or ctx.project_id
        if self.in_project and project:
            query["project_id"] = project
        listed = type_.api(ctx).search(collection, parent=parent, **query)
        try:
            found = [item for item in listed if self._is_same(type_, ctx, item, wanted)]
        except ProviderNotFound:  # the parent does not exist
            return []
        return [str(item[collection.id_key]) for item in found[:1]]

    def is_own(self, type_: CollectionType, ctx: Context, actual: JsonMapping) -> bool:
        """Return whether an object has the known values."""
        known = [name for name in self.compared if ctx.properties.get(name) is not None]
        return all(type_.equal(name, ctx.properties[name], type_.from_api(name, actual)) for name in known)

    def _is_same(self, type_: CollectionType, ctx: Context, item: JsonMapping, wanted: JsonMapping) -> bool:
        """Return whether an object has the values; the service has compared those that restrict the list."""
        for name in (*self.filters, *self.compared):
            desired = wanted[name] if name == "name" else ctx.properties.get(name)
            if name in self.filters and type_.layout[name].key not in item:
                continue
            if not type_.equal(name, desired, type_.from_api(name, item)):
                return False
        if self.unused and item.get(self.unused):
            return False
        return not self.is_new or is_created_by(ctx, item.get("created_at"))


# The token in a description.


def marked(description: str, token: str) -> str:
    """Return a description with a token; without it if there is no room."""
    return _with_mark(description, f"(stack-orchestrator:{token})")


def unmarked(description: str | None) -> str:
    """Return a description without its token."""
    return _MARK.sub("", description or "")


def described(current: str | None, description: str) -> str:
    """Return a new description with the token of the current description."""
    mark = _MARK.search(current or "")
    return description if mark is None else _with_mark(description, mark.group().strip())


def with_addresses(current: str | None, addresses: Sequence[str]) -> str:
    """Return the current description with released addresses, to be restored; `()` removes them."""
    mark = _MARK.search(current or "")
    token = "" if mark is None else mark.group(1)
    kept = f"; addresses {' '.join(addresses)}" if addresses else ""
    return _with_mark(unmarked(current), f"(stack-orchestrator:{token or '-'}{kept})")


def released_addresses(description: str | None) -> list[str]:
    """Return the released addresses in a description."""
    mark = _MARK.search(description or "")
    return mark.group(2).split() if mark and mark.group(2) else []


def _with_mark(description: str, mark: str) -> str:
    text = f"{description} {mark}" if description else mark
    return text if len(text) <= MAX_DESCRIPTION else description


# The token in tags.


def token_tag(token: str) -> str:
    """Return the tag by which the object of a request is found."""
    return f"{TAG_PREFIX}{token}"


def tags(token: str, given: Sequence[str] | None) -> list[str]:
    """Return all tags of an object: the template's, and the request token's."""
    return [*dict.fromkeys(given or ()), token_tag(token)]


def own_tags(actual: Mapping[str, Any]) -> list[str]:
    """Return the tags of an object without the request token's."""
    return sorted(tag for tag in actual.get("tags") or () if not tag.startswith(TAG_PREFIX))


def changed_tags(actual: Mapping[str, Any], given: Sequence[str] | None) -> list[str]:
    """Return new tags for an object, which keeps the request token's."""
    kept = [tag for tag in actual.get("tags") or () if tag.startswith(TAG_PREFIX)]
    return [*dict.fromkeys(given or ()), *kept]
