"""Network interfaces of a server.

Nova creates the port of an entry that names only a network. The server creates its *own ports* where nova
cannot: for a subnet, for further attributes of the port, for a floating IP. Their descriptions contain the
request token, so that a repeated create finds them.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from orchestrator.clients.openstack.networking.network import FLOATING_IPS, PORTS, SUBNETS
from orchestrator.errors import UNREACHABLE_ERRORS, ProviderError, ProviderNotFound
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Value
from orchestrator.resources.openstack.abandoned_ports import remove_port
from orchestrator.resources.openstack.connection import openstack

Entry = Mapping[str, Any]

KEYS: Final = (
    "network",
    "subnet",
    "port",
    "fixed_ip",
    "floating_ip",
    "allocate_network",
    "port_extra_properties",
    "tag",
)
PLACE_KEYS: Final = ("network", "subnet", "fixed_ip", "port")
RENAMED: Final = {"qos_policy": "qos_policy_id"}
MAX_NAME: Final = 255


class Matching(NamedTuple):
    """The interfaces of a server and the entries that they serve."""

    ports: Sequence[str | None]  # for each entry
    managed: Sequence[str]  # that are detached when no entry needs them
    is_selected: bool  # nova has selected the networks: all interfaces are managed, and none serves an entry


@dataclass(frozen=True, slots=True)
class Keep:
    """An entry is served by an attached port."""

    entry: Entry
    port: str


@dataclass(frozen=True, slots=True)
class Reuse:
    """An entry describes the port of a former entry in other words."""

    entry: Entry
    port: str


@dataclass(frozen=True, slots=True)
class Attach:
    """An entry needs an interface."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class Detach:
    """No entry needs the interface of a port."""

    port: str


Step = Keep | Reuse | Attach | Detach


class Changes(NamedTuple):
    """The interfaces to detach, by port, and the entries to attach. `kept`: `{"id", "entry"}` of ports that
    are reused as own ports.
    """

    detach: list[str]
    attach: list[JsonObject]
    kept: Sequence[JsonObject] = ()


def entries(props: Mapping[str, Value]) -> list[JsonObject]:
    """Return the entries of `networks` without empty values."""
    return [{key: item[key] for key in KEYS if item.get(key)} for item in props.get("networks") or ()]


def needs_own_port(entry: Entry) -> bool:
    """Return whether the server creates the port of an entry itself."""
    special = entry.get("subnet") or entry.get("port_extra_properties") or entry.get("floating_ip")
    return not entry.get("port") and bool(special)


def create_own_ports(ctx: Context, props: Mapping[str, Value], wanted: Sequence[Entry]) -> list[JsonObject]:
    """Create the own ports of entries, or find an earlier attempt's. Return `{"id", "entry"}` of each.

    Each call of an entry with a floating IP associates it.
    """
    made = []
    for index, (entry, mark) in enumerate(zip(wanted, _marks(ctx, wanted), strict=True)):
        port_id = entry.get("port")
        if needs_own_port(entry):
            found = _marked_port(ctx, mark) if ctx.elapsed_seconds > 0 else None
            port_id = found or _create_port(ctx, props, entry, index, mark)
            made.append({"id": port_id, "entry": dict(entry)})
        if entry.get("floating_ip"):
            openstack(ctx).network.update(FLOATING_IPS, entry["floating_ip"], {"port_id": port_id})
    return made


def find_own_ports(ctx: Context, wanted: Sequence[Entry]) -> list[JsonObject]:
    """Return the own ports that exist for entries, as `create_own_ports`."""
    found = []
    for entry, mark in zip(wanted, _marks(ctx, wanted), strict=True):
        port_id = _marked_port(ctx, mark) if needs_own_port(entry) else None
        if port_id:
            found.append({"id": port_id, "entry": dict(entry)})
    return found


def own_port_ids(ctx: Context) -> list[str]:
    """Return the own ports that are stored with the server, or that are found by the request token."""
    if "ports" in ctx.data:
        return [port["id"] for port in ctx.data["ports"]]
    return [port["id"] for port in find_own_ports(ctx, entries(ctx.properties))]


def remaining_ports(ctx: Context) -> list[str]:
    """Return the own ports that exist."""
    ids = own_port_ids(ctx)
    if not ids:
        return []
    neutron = openstack(ctx).network
    return [port_id for port_id in ids if neutron.find(PORTS, port_id) is not None]


def early_address(ctx: Context, own_ports: Sequence[Mapping[str, Any]]) -> JsonObject:
    """Return the attribute `first_address` of a server that nova is still building: the address of its first
    port. Without an own or given port, or if this has several addresses, it is not known yet. Nor is it if
    the network service does not answer: nova has accepted the server.
    """
    wanted = entries(ctx.properties)
    if not wanted:
        return {}
    own = _by_entry(own_ports)
    port_id = wanted[0].get("port") or (own(wanted[0]) if needs_own_port(wanted[0]) else None)
    port: JsonObject | None = None
    if port_id:
        with suppress(ProviderError, *UNREACHABLE_ERRORS):
            port = openstack(ctx).network.observed_object(PORTS, port_id)
    addresses = (port or {}).get("fixed_ips") or []
    return {"first_address": addresses[0]["ip_address"]} if len(addresses) == 1 else {}


def remove_ports(ctx: Context, port_ids: Iterable[str]) -> None:
    """Delete own ports; missing ports are no error."""
    for port_id in port_ids:
        remove_port(openstack(ctx), port_id)


def abandon_ports(ctx: Context, ports: Sequence[Mapping[str, Any]]) -> None:
    """Delete the ports of a server that nova has refused. A failure leaves them to the next attempt."""
    with suppress(ProviderError):
        remove_ports(ctx, [port["id"] for port in ports])


def release_floating_ips(ctx: Context, wanted: Sequence[Entry]) -> None:
    """Disassociate the floating IPs of entries."""
    for entry in wanted:
        if entry.get("floating_ip"):
            with suppress(ProviderNotFound):
                openstack(ctx).network.update(FLOATING_IPS, entry["floating_ip"], {"port_id": None})


def requested_networks(
    wanted: Sequence[Entry], own_ports: Sequence[Mapping[str, Any]]
) -> str | list[JsonObject]:
    """Return `networks` of the request for a server."""
    if not wanted:
        return "auto"
    allocation = wanted[0].get("allocate_network")
    if allocation:
        return str(allocation)
    own = _by_entry(own_ports)
    return [_interface(entry, own, network_key="uuid", port_key="port") for entry in wanted]


def attachment(entry: Entry, own_ports: Sequence[Mapping[str, Any]]) -> JsonObject:
    """Return the request to attach an entry to a server; nova selects a network for an empty entry."""
    interface = _interface(entry, _by_entry(own_ports), network_key="net_id", port_key="port_id")
    address = interface.pop("fixed_ip", None)
    return {**interface, "fixed_ips": [{"ip_address": address}]} if address else interface


def matched_ports(
    wanted: Sequence[Entry], own_ports: Sequence[Mapping[str, Any]], attached: Sequence[Mapping[str, Any]]
) -> list[str | None]:
    """Return for each entry the port of the attached interface that serves it; None without one."""
    free = {interface["port_id"]: interface for interface in attached}
    own = _by_entry(own_ports)
    result: list[str | None] = [None] * len(wanted)
    for index, entry in enumerate(wanted):  # ports with a known id first
        port_id = entry.get("port") or (own(entry) if needs_own_port(entry) else None)
        if port_id in free:
            result[index] = free.pop(port_id)["port_id"]
    for with_address in (True, False):
        for index, entry in enumerate(wanted):
            if result[index] or entry.get("port") or needs_own_port(entry):
                continue
            if bool(entry.get("fixed_ip")) is with_address:
                port_id = next((key for key, value in free.items() if _serves(value, entry)), None)
                result[index] = port_id
                free.pop(port_id or "", None)
    return result


def changes(
    before: Sequence[Entry],
    after: Sequence[Entry],
    own_ports: Sequence[Mapping[str, Any]],
    attached: Sequence[Mapping[str, Any]],
    pending: Iterable[str] = (),
) -> Changes:
    """Return the changes from the entries `before` to `after`.

    Interfaces that no entry describes are left alone, except if nova selected the server's networks.
    `pending` are ports of an interrupted update that are still to be detached.
    """
    steps = plan(before, after, match(before, own_ports, attached), own_ports, attached, pending)
    return Changes(
        [step.port for step in steps if isinstance(step, Detach)],
        [dict(step.entry) for step in steps if isinstance(step, Attach)],
        reused_own_ports(steps),
    )


def match(
    before: Sequence[Entry], own_ports: Sequence[Mapping[str, Any]], attached: Sequence[Mapping[str, Any]]
) -> Matching:
    """Return which interfaces serve the entries."""
    if _selects_networks(before):
        return Matching([None] * len(before), [interface["port_id"] for interface in attached], True)
    ports = matched_ports(before, own_ports, attached)
    return Matching(ports, [port for port in ports if port], False)


def plan(
    before: Sequence[Entry],
    after: Sequence[Entry],
    found: Matching,
    own_ports: Sequence[Mapping[str, Any]],
    attached: Sequence[Mapping[str, Any]],
    pending: Iterable[str] = (),
) -> list[Step]:
    """Return a step for each entry of `after`, then the interfaces to detach.

    An entry keeps the port of an equal entry, reuses a port that it describes in other words, or is served by
    an interface that no entry had.
    """
    if _selects_networks(after):
        return _selection(after, found)
    kept = _kept_ports(before, found.ports, after)
    reused = _reworded_ports(before, found.ports, after, kept, attached)
    used = {port for port in (*kept, *reused.values(), *found.ports) if port}
    free = [interface for interface in attached if interface["port_id"] not in used]
    rest = [entry for index, entry in enumerate(after) if kept[index] is None and index not in reused]
    served = iter(matched_ports(rest, own_ports, free))
    steps: list[Step] = []
    for index, entry in enumerate(after):
        if index in reused:
            steps.append(Reuse(entry, reused[index]))
        elif port := kept[index] or next(served):
            steps.append(Keep(entry, port))
        else:
            steps.append(Attach(entry))
    needed = {step.port for step in steps if isinstance(step, Keep | Reuse)}
    present = {interface["port_id"] for interface in attached}
    late = [port for port in pending if port in present and port not in found.managed]
    return [*steps, *(Detach(port) for port in (*found.managed, *late) if port not in needed)]


def reused_own_ports(steps: Iterable[Step]) -> list[JsonObject]:
    """Return the reused ports of entries for which the server creates ports: they are own ports by now."""
    return [
        {"id": step.port, "entry": dict(step.entry)}
        for step in steps
        if isinstance(step, Reuse) and needs_own_port(step.entry)
    ]


def _selects_networks(wanted: Sequence[Entry]) -> bool:
    """Return whether nova selects the networks of a server with these entries, or the server has none."""
    return not wanted or bool(wanted[0].get("allocate_network"))


def _selection(after: Sequence[Entry], found: Matching) -> list[Step]:
    """Return the steps of a server without interfaces, or with networks that nova selects: its selection
    stays.
    """
    detached = [Detach(port) for port in found.managed]
    if after and after[0].get("allocate_network") == "none":
        return [*detached]
    return [] if found.is_selected else [Attach({}), *detached]


def without_interface(ctx: Context, server: Mapping[str, Any]) -> set[int]:
    """Return the entries, by position, whose interface is missing. The addresses that nova lists with the
    server prove without a request that none is.
    """
    wanted = entries(ctx.properties)
    if not wanted or wanted[0].get("allocate_network"):
        return set()
    addresses = [address for found in (server.get("addresses") or {}).values() for address in found]
    if len({address.get("OS-EXT-IPS-MAC:mac_addr") for address in addresses}) >= len(wanted):
        return set()
    ports = matched_ports(
        wanted, ctx.data.get("ports") or [], openstack(ctx).compute.interfaces(server["id"])
    )
    return {index for index, port in enumerate(ports) if port is None}


def _kept_ports(
    before: Sequence[Entry], ports: Sequence[str | None], after: Sequence[Entry]
) -> list[str | None]:
    """Return for each entry of `after` the port of an equal entry of `before`, each port once."""
    rest = [(_text(entry), port) for entry, port in zip(before, ports, strict=True) if port]
    kept: list[str | None] = []
    for entry in after:
        match = next((pair for pair in rest if pair[0] == _text(entry)), None)
        if match is not None:
            rest.remove(match)
        kept.append(None if match is None else match[1])
    return kept


def _reworded_ports(
    before: Sequence[Entry],
    ports: Sequence[str | None],
    after: Sequence[Entry],
    kept: Sequence[str | None],
    attached: Sequence[Mapping[str, Any]],
) -> dict[int, str]:
    """Return ports that serve further entries of `after`, by their places. The entry asks for the network,
    the subnet, the address or the port that is attached, and is otherwise equal to `before`'s: as in
    Heat, the port stays. A port that `before` names serves only its own entry.
    """
    interfaces = {interface["port_id"]: interface for interface in attached}
    rest = [
        (_demands(entry), port)
        for entry, port in zip(before, ports, strict=True)
        if port and port not in kept and not entry.get("port")
    ]
    found: dict[int, str] = {}
    for index, entry in enumerate(after):
        if kept[index] is not None:
            continue
        for pair in rest:
            if pair[0] == _demands(entry) and _serves(interfaces[pair[1]], entry):
                found[index] = pair[1]
                rest.remove(pair)
                break
    return found


def _demands(entry: Entry) -> JsonObject:
    """Return what an entry asks for beside its place in the network."""
    return {key: value for key, value in entry.items() if key not in PLACE_KEYS}


def _interface(entry: Entry, own: Any, *, network_key: str, port_key: str) -> JsonObject:
    tag: JsonObject = {"tag": entry["tag"]} if entry.get("tag") else {}
    port_id = entry.get("port") or (own(entry) if needs_own_port(entry) else None)
    if port_id:
        return {port_key: port_id, **tag}
    interface: JsonObject = {network_key: entry["network"]} if entry.get("network") else {}
    if entry.get("fixed_ip"):
        interface["fixed_ip"] = entry["fixed_ip"]
    return {**interface, **tag}


def _by_entry(own_ports: Sequence[Mapping[str, Any]]) -> Any:
    """Return a function that gives each own port of an entry once."""
    rest = [(_text(port["entry"]), port["id"]) for port in own_ports]

    def take(entry: Entry) -> str | None:
        index = next((index for index, (text, _) in enumerate(rest) if text == _text(entry)), None)
        return None if index is None else rest.pop(index)[1]

    return take


def _serves(interface: Mapping[str, Any], entry: Entry) -> bool:
    addresses = {fixed.get("ip_address") for fixed in interface.get("fixed_ips") or ()}
    subnets = {fixed.get("subnet_id") for fixed in interface.get("fixed_ips") or ()}
    if entry.get("network") and interface.get("net_id") != entry["network"]:
        return False
    if entry.get("subnet") and entry["subnet"] not in subnets:
        return False
    if entry.get("port") and interface.get("port_id") != entry["port"]:
        return False
    return not entry.get("fixed_ip") or entry["fixed_ip"] in addresses


def _marks(ctx: Context, wanted: Sequence[Entry]) -> Iterator[str]:
    """Yield a description for the own port of each entry: equal for each attempt, different for each port;
    "" for an entry without an own port.
    """
    seen: Counter[str] = Counter()
    for entry in wanted:
        if not needs_own_port(entry):
            yield ""
            continue
        text = _text(entry)
        seen[text] += 1
        digest = hashlib.sha256(f"{text} {seen[text]}".encode()).hexdigest()[:12]
        yield f"(stack-orchestrator:{ctx.token}.{digest})"


def _text(entry: Entry) -> str:
    """Return a text that is the same for equal entries: a subnet determines the network."""
    implied = {"network"} if entry.get("subnet") else set()
    return json.dumps({key: entry[key] for key in entry if key not in implied}, sort_keys=True)


def _marked_port(ctx: Context, mark: str) -> str | None:
    found = openstack(ctx).network.search(PORTS, description=mark, fields=("id",))
    return next((port["id"] for port in found), None)


def _create_port(ctx: Context, props: Mapping[str, Value], entry: Entry, index: int, mark: str) -> str:
    neutron = openstack(ctx).network
    network_id = entry.get("network")
    if not network_id:
        subnet = neutron.find(SUBNETS, entry["subnet"]) or {}
        network_id = subnet.get("network_id")
    values: JsonObject = {
        "network_id": network_id,
        "name": f"{ctx.physical_name}-port-{index}"[:MAX_NAME],
        "description": mark,
        **_addresses(entry),
        **_extras(entry.get("port_extra_properties") or {}),
    }
    if props.get("security_groups"):
        values["security_groups"] = list(props["security_groups"])
    return str(neutron.create(PORTS, values)["id"])


def _addresses(entry: Entry) -> JsonObject:
    address: JsonObject = {}
    if entry.get("subnet"):
        address["subnet_id"] = entry["subnet"]
    if entry.get("fixed_ip"):
        address["ip_address"] = entry["fixed_ip"]
    return {"fixed_ips": [address]} if address else {}


def _extras(given: Mapping[str, Any]) -> JsonObject:
    """Return further attributes of a port; defaults are omitted, because some need an administrator."""
    extras = dict(given.get("value_specs") or {})
    for name, value in given.items():
        if name == "no_fixed_ips" and value:
            extras["fixed_ips"] = []
        elif name not in ("value_specs", "no_fixed_ips") and value not in (None, "", [], "normal"):
            extras[RENAMED.get(name, name)] = value
    return extras
