"""Every state change of a node is permitted by `engine/states.py`."""

from __future__ import annotations

from sqlalchemy import text

from orchestrator.engine.states import NODE_ENDS, NODE_MOVES, NODE_STATES
from tests.scenarios.fake_cloud import Cloud
from tests.scenarios.world import World, test_resource

WATCH = """
CREATE TABLE move (was text, became text);
CREATE FUNCTION note_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO move VALUES (old.state, new.state); RETURN NULL; END $$;
CREATE TRIGGER note_move AFTER UPDATE ON graph_node FOR EACH ROW
    WHEN (old.state IS DISTINCT FROM new.state) EXECUTE FUNCTION note_move();
"""


def test_nodes_of_a_busy_installation_make_allowed_moves_only(postgres_url: str):
    cloud = Cloud()
    world = World(postgres_url, seed=3, types=cloud.types())
    with world.database.engine.begin() as connection:
        connection.execute(text(WATCH))
    for number in range(4):
        resources = {
            "a": {"type": "Cloud::Thing"},
            "b": {"type": "Cloud::Thing", "depends_on": "a"},
            "c": test_resource(requires=["a"], wait_secs=number),
            "d": test_resource(requires=["c"], fail=number % 2 == 1),
            "e": test_resource(requires=["d"]),
        }
        hooks = {"resources": {"[bd]": {"hooks": ["pre-create", "post-create"]}}} if number == 0 else {}
        world.create(f"s{number}", resources, environment={"resource_registry": hooks})
        world.deliver(3 + number)
        if number == 2:
            world.delete(f"s{number}")
        world.deliver_all(shuffle=True, repeat=0.2, lose=0.2)
    for name, hook in world.paused("s0"):  # then they wait at the next
        world.clear("s0", name, hook)
        world.deliver_all(shuffle=True, repeat=0.2, lose=0.2)
    world.update("s0", {"a": {"type": "Cloud::Thing"}})
    for number in (0, 1, 3):
        world.delete(f"s{number}")
    world.deliver_all(shuffle=True, repeat=0.2, lose=0.2)
    moves = {(row.was, row.became) for row in world.rows("SELECT DISTINCT was, became FROM move")}
    assert moves <= NODE_MOVES
    assert {("queued", "ready"), ("checking", "ready"), ("queued", "failed"), ("waiting", "queued")} <= moves
    assert {
        ("queued", "paused"),
        ("checking", "paused"),
        ("paused", "queued"),
        ("paused", "dropped"),
    } <= moves
    assert world.rows("SELECT 1 FROM resource") == []
    world.close()


def test_no_move_leaves_an_end_and_every_state_can_be_reached_and_left():
    assert not [move for move in NODE_MOVES if move[0] in NODE_ENDS]
    assert {was for was, _ in NODE_MOVES} == set(NODE_STATES) - set(NODE_ENDS)
    assert {became for _, became in NODE_MOVES} == set(NODE_STATES)
