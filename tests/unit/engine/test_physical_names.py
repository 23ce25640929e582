"""Physical names."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from orchestrator.engine.physical_names import physical_name, short_id


def test_the_twelve_characters_are_the_uuids_random_bits_in_base32():
    assert short_id(UUID("00000000-0000-4000-8000-000000000000")) == "aaaaaaaaaaaa"
    assert short_id(UUID("ffffffff-ffff-4fff-bfff-ffffffffffff")) == "777777777777"
    assert short_id(UUID("00000001-0000-4000-8000-000000000000")) == "aaaaaaaaaaab"
    assert short_id("00000000-0000-4800-8000-000000000000") == "qaaaaaaaaaaa"


def test_a_name_says_whose_it_is():
    uuid = uuid4()
    assert physical_name("stack", "server", uuid) == f"stack-server-{short_id(uuid)}"


@pytest.mark.parametrize("limit", [53, 64, 255])
def test_a_long_name_keeps_its_beginning_and_its_unique_end(limit):
    uuid = uuid4()
    name = physical_name("mystack" * 40, "resource", uuid, limit)
    assert len(name) == limit
    assert name.startswith("my-")
    assert name.endswith(f"-resource-{short_id(uuid)}")


def test_a_name_that_just_fits_is_whole():
    whole = physical_name("s", "r", UUID(int=0))
    assert physical_name("s", "r", UUID(int=0), limit=len(whole)) == whole
