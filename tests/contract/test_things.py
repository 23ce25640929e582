"""The third-party type misbehaves on demand, and the log of its server records every request."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from orchestrator.errors import ProviderBusy
from tests.contract.operated import Operated
from tests.plugins.thing_fixture import THING_DIR


@pytest.fixture
def thing(things, installed):
    """Return a maker of things."""
    return lambda **properties: Operated(installed["Test::Thing"], properties)


def test_a_process_finds_the_type_by_pythonpath_alone(things):
    code = (
        "from orchestrator.resources.registry import load_registry;"
        "import os; print(load_registry()['Test::Thing'].name, os.environ['THING_URL'])"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], env=things.env(), capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == ["Test::Thing", things.url]


def test_the_migrated_schema_equals_a_new_installation(installed):
    written = (THING_DIR / "pyproject.toml").read_text()
    assert f'"Test::Thing" = "{type(installed["Test::Thing"]).__module__}:Thing"' in written


def test_asking_twice_makes_two_and_the_log_says_so(thing, things):
    a = thing(value="v")
    a.create()
    first = a.physical_id
    a.create()
    assert a.kind.find(a.ctx, a.ctx.token) == first
    assert things.made() == {a.ctx.physical_name: 2}
    assert [entry["token"] for entry in things.log("created")] == [a.ctx.token] * 2
    assert len(things.alive()) == 2


def test_it_shows_its_value_and_serial(thing):
    a = thing(value="v")
    a.create()
    assert a.observe().attributes == {"value": "v", "serial": 1}


def test_an_update_is_logged_and_shown(thing, things):
    a = thing(value="v")
    a.create()
    a.update(value="w")
    assert a.observe().attributes["value"] == "w"
    assert [entry["value"] for entry in things.log("updated")] == ["w"]


def test_it_is_ready_after_its_delay(thing):
    a = thing(delay=3600)
    a.create()
    observed = a.observe()
    assert (observed.exists, observed.ready) == (True, False)
    assert observed.retry_after is not None


def test_it_refuses_the_given_number_of_times(thing, things):
    a = thing(fail_times=2)
    for _ in range(2):
        with pytest.raises(ProviderBusy):
            a.create()
    assert things.made() == {}
    a.create()
    assert len(things.log("refused")) == 2
    assert len(things.log("created")) == 1


def test_a_permanent_error_is_final_and_a_temporary_error_is_not(thing):
    bad, unlucky = thing(error=True), thing(error_times=1)
    bad.create()
    assert (bool(bad.observe().error), bad.observe().replaceable) == (True, False)
    unlucky.create()
    assert (bool(unlucky.observe().error), unlucky.observe().replaceable) == (True, True)
    unlucky.create()
    assert unlucky.observe().ready


def test_a_silent_server_costs_the_deadline_and_makes_nothing(thing, things):
    a = thing(silent=True)
    a.ctx = replace(a.ctx, deadline_seconds=0.2)
    with pytest.raises(ProviderBusy):
        a.create()
    assert things.made() == {}


def test_a_thing_created_before_a_late_answer_is_found_by_its_token(thing, things):
    a = thing(slow_after=30)
    a.ctx = replace(a.ctx, deadline_seconds=0.3)
    with pytest.raises(ProviderBusy):
        a.create()
    (entry,) = things.log("created")
    assert a.kind.find(replace(a.ctx, deadline_seconds=5.0), a.ctx.token) == entry["id"]


def test_a_server_that_cannot_be_reached_is_busy_and_nothing_is_gone(thing, things):
    a = thing()
    a.create()
    things.stop()
    with pytest.raises(ProviderBusy):
        a.observe()
    with pytest.raises(ProviderBusy):
        a.delete()
    things.start()
    assert a.observe("CREATE").exists
    assert len(things.alive()) == 1


def test_a_frozen_server_is_busy_until_it_thaws(thing, things):
    a = thing()
    a.create()
    a.ctx = replace(a.ctx, deadline_seconds=0.2)
    things.freeze()
    with pytest.raises(ProviderBusy):
        a.observe()
    things.thaw()
    a.ctx = replace(a.ctx, deadline_seconds=5.0)
    assert a.observe().ready


def test_a_server_started_again_has_its_things_back(thing, things):
    a, b = thing(value="a"), thing(value="b")
    a.create()
    b.create()
    b.delete()
    things.stop()
    things.start()
    assert a.observe("CREATE").attributes == {"value": "a", "serial": 1}
    assert not b.observe().exists
    c = thing()
    c.create()
    assert c.observe().attributes["serial"] == 3
