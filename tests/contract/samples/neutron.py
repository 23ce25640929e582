"""Samples of Neutron's types."""

from __future__ import annotations

from orchestrator.testing.samples import Sample

SAMPLES = (Sample("OS::Neutron::Port", answers={"replacement_policy": "replace"}),)
