"""The part of the contract about faults of the provider: outages, and calls without an answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from orchestrator.resources.verbs.values import found_ids
from orchestrator.testing.faults import FAULTS, FaultAt, Life
from orchestrator.testing.operated import Operated
from orchestrator.testing.outages import fault_of, provider_calls
from orchestrator.testing.samples import Sample


class FaultContract:
    """Faults of the provider do no harm; applies to all types with a provider."""

    def test_an_unreachable_provider_is_no_absent_object(self, operate: Callable[[], Operated]) -> None:
        existing, fresh = operate(), operate()
        if existing.sample.outage is None:
            return
        existing.create()
        before, ctx = existing.settled(), existing.ctx
        with existing.sample.outage():
            faults = [fault for call in provider_calls(existing, fresh) if (fault := fault_of(*call))]
        assert not faults, "; ".join(faults)
        existing.ctx = ctx
        assert existing.observe("CHECK").reference_id == before.reference_id
        existing.delete()
        assert not existing.settled().exists

    @pytest.mark.parametrize("fault", FAULTS)
    def test_a_fault_of_any_call_changes_no_end(
        self, operate: Callable[[], Operated], sample: Sample, fault: str
    ) -> None:
        """A fault of a single call, whichever, leaves no second object and no unfinished operation."""
        if sample.intercept is None or not (operate().kind.can_find or fault in {"busy", "slow"}):
            return
        calls = FaultAt()
        with sample.intercept(calls):
            Life(operate(), calls).run()
        for number in range(1, calls.calls + 1):
            operated, one = operate(), FaultAt(fault, number)
            with sample.intercept(one):
                life = Life(operated, one)
                life.run()
            assert not life.duplicates, f"call {number}: {life.duplicates}"
            if operated.kind.can_find:
                token = f"{operated.uuid}-1"
                left = found_ids(operated.kind.find(replace(operated.ctx, token=token), token))
                assert left == (), f"call {number} leaves {left}"
