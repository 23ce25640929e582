"""The connection of checks survives failed transactions."""

from __future__ import annotations

import pytest
from psycopg.errors import DivisionByZero

from orchestrator.store.connections.prepared import fetch_prepared
from tests.scenarios.world import World, test_resource


def test_a_transaction_that_was_rolled_back_costs_no_later_visit_its_statements(world: World):
    uuid = world.create("s", {"a": test_resource(), "b": test_resource(requires=["a"])})
    world.deliver(2)
    for durable in (True, False):
        db = world.database.check_connection(durable=durable)
        assert fetch_prepared(db, "SELECT %(x)s::int", {"x": 1}) == [(1,)]
        with pytest.raises(DivisionByZero), db.transaction():
            db.execute("SELECT 1 / 0")
        db.execute("SELECT 2")  # with which psycopg forgets all that was prepared
        assert fetch_prepared(db, "SELECT %(x)s::int", {"x": 3}) == [(3,)]
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
