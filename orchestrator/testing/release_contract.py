"""The part of the contract about replacements: an object gives up what its replacement needs."""

from __future__ import annotations

from orchestrator.testing.operated import Operated, is_fine


class ReleaseContract:
    """Applies to all types with `release` and `reclaim`."""

    def test_a_release_and_its_return_may_run_twice(self, operated: Operated) -> None:
        if not operated.kind.can_release or operated.kind.deletes_first:
            return
        operated.create()
        made = operated.settled()
        for _ in range(2):
            operated.release()
            released = operated.settled()
            assert (released.exists, released.released) == (True, True)
        for _ in range(2):
            operated.reclaim()
            assert is_fine(operated.settled())
        returned = operated.observe("CHECK")
        assert is_fine(returned)
        assert (returned.attributes, returned.reference_id) == (made.attributes, made.reference_id)
        assert returned.properties == made.properties

    def test_a_name_is_free_after_its_object_was_deleted_first(self, operated: Operated) -> None:
        if not operated.kind.deletes_first:
            return
        operated.create()
        operated.settled()
        for _ in range(2):
            operated.release()
            assert not operated.settled().exists

    def test_delete_accepts_a_released_object(self, operated: Operated) -> None:
        if not operated.kind.can_release:
            return
        operated.create()
        operated.settled()
        operated.release()
        operated.settled()
        operated.delete()
        assert not operated.settled().exists
