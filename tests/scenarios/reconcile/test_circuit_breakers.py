"""Circuit breakers: an outage of a service costs one call at a time and one event for each stack."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.security.caller import Caller
from orchestrator.store import circuit_breakers
from tests.scenarios import clock
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.world import World

SERVERS = {f"a{n}": cloud_thing(type="Cloud::Server") for n in range(20)}
SERVICE = "Cloud::Server"


def breakers(world: World) -> list[tuple[str, str, bool]]:
    rows = world.rows(
        "SELECT project_id, service, opened_at IS NOT NULL AS open FROM circuit_breaker ORDER BY 1, 2"
    )
    return [(row.project_id, row.service, row.open) for row in rows]


def test_an_outage_costs_a_single_call_at_a_time(world: World, cloud: Cloud):
    uuid = world.create("s", SERVERS)
    cloud.outage |= {"create", "find"}
    world.retry()
    assert breakers(world) == [("p1", SERVICE, True)]
    before = len(cloud.calls)
    assert before < 2 * circuit_breakers.FAILURES_TO_OPEN
    world.retry(5)
    assert len(cloud.calls) - before <= 5  # a probe each time
    cloud.outage.clear()
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert breakers(world) == [("p1", SERVICE, False)]
    assert set(cloud.made.values()) == {1}


def test_creates_that_an_open_breaker_refuses_have_not_begun(world: World, cloud: Cloud):
    uuid = world.create("s", SERVERS)
    cloud.outage.add("create")
    world.retry(3)
    cloud.outage.clear()
    begun = {call.removeprefix("create ") for call in cloud.calls if call.startswith("create ")}
    assert len(begun) < len(SERVERS) / 2
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert {call.removeprefix("find ") for call in cloud.calls if call.startswith("find ")} <= begun


def test_resources_of_another_service_go_on(world: World, cloud: Cloud):
    world.create("s", {**SERVERS, "other": cloud_thing(type="Cloud::Machine")})
    cloud.on["create"] = lambda ctx: cloud.refuse_answer() if ctx.name != "other" else None
    world.retry(2)
    states = {row.name: row.status for row in world.resources()}
    assert states["other"] == "COMPLETE"
    assert states["a1"] != "COMPLETE"


def test_the_service_of_another_project_goes_on(world: World, cloud: Cloud):
    cloud.outage.add("create")
    world.create("s", SERVERS)
    world.retry(2)
    cloud.outage.clear()
    with world.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE circuit_breaker SET probe_at = 'infinity'")
    world.caller = Caller("p2", "tester")
    world.context = replace(world.context, caller=world.caller)
    uuid = world.create("s", {"b": SERVERS["a1"]})
    while world.messages:
        world.deliver()
    assert world.state(uuid) == "CREATE_COMPLETE"


def test_a_stack_has_one_event_for_each_outage(world: World, cloud: Cloud):
    uuid = world.create("s", SERVERS)
    for _ in range(2):
        cloud.outage.add("create")
        world.retry(4)
        cloud.outage.clear()
        world.retry(2)
        world.update("s", {name: cloud_thing(type=SERVICE, final=True) for name in SERVERS})
        world.elapse(61, "answer")
    world.deliver_all()
    about = [reason for reason in world.event_reasons(uuid, "s") if "is unavailable" in reason]
    assert about == [
        f"{action}_IN_PROGRESS Cloud::Server is unavailable: ProviderError: no answer. "
        "Its operations are tried again until the timeout of the stack."
        for action in ("CREATE", "UPDATE")
    ]


def test_a_single_call_without_an_answer_is_no_event(world: World, cloud: Cloud):
    uuid = world.create("s", {"a": cloud_thing(type=SERVICE)})
    cloud.outage.add("create")
    while world.messages:
        world.deliver()
    cloud.outage.clear()
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert not [reason for reason in world.event_reasons(uuid, "s") if "is unavailable" in reason]


def test_an_answer_makes_all_waiting_nodes_due(world: World, cloud: Cloud):
    world.create("s", SERVERS)
    cloud.outage.add("create")
    world.retry(5)
    cloud.outage.clear()
    clock.make_probes_due(world.database)
    with world.database.engine.begin() as connection:  # only one of them is due
        connection.exec_driver_sql("UPDATE graph_node SET due_at = now() WHERE label = 'a1'")
    world.messages += world.sweep.run()
    while world.messages:
        world.deliver()
    world.messages += world.sweep.run()
    while world.messages:
        world.deliver()
    assert {row.status for row in world.resources()} == {"COMPLETE"}


def test_a_probe_whose_worker_died_is_followed_by_another(world: World, cloud: Cloud):
    db = world.database.check_connection(durable=False)
    for _ in range(circuit_breakers.FAILURES_TO_OPEN):
        circuit_breakers.record_failure(db, "p1", SERVICE, "no answer", 1.0)
    clock.make_probes_due(world.database)
    assert circuit_breakers.start_probe(db, "p1", SERVICE)
    assert not circuit_breakers.start_probe(db, "p1", SERVICE)
    assert circuit_breakers.read(db, "p1", SERVICE).blocked
    db.execute("UPDATE circuit_breaker SET probing_until = now() - interval '1 second'")
    assert circuit_breakers.start_probe(db, "p1", SERVICE)


def test_a_check_observes_every_reachable_resource_while_the_breaker_is_open(world: World, cloud: Cloud):
    uuid = world.create("s", SERVERS)
    world.deliver_all()
    cloud.on["observe"] = lambda ctx: None if ctx.name == "a7" else cloud.refuse_answer()
    world.act("s", "check")
    for _ in range(12):
        with world.database.engine.begin() as connection:  # no probe is due
            connection.exec_driver_sql(
                "UPDATE circuit_breaker SET probe_at = 'infinity' WHERE probe_at IS NOT NULL"
            )
            connection.exec_driver_sql(
                "UPDATE graph_node SET due_at = now() WHERE state = 'waiting' AND due_at <> 'infinity'"
            )
        world.messages += world.sweep.run()
        while world.messages:
            world.deliver()
    assert world.state(uuid) == "CHECK_FAILED"
    states = {row.name: row.action for row in world.resources()}
    assert states.pop("a7") == "CHECK"
    assert set(states.values()) == {"CREATE"}
