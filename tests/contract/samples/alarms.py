"""Samples of the types of alarms."""

from __future__ import annotations

from orchestrator.testing.samples import Sample

SAMPLES = (Sample("AWS::CloudWatch::Alarm", {"Period": "60", "EvaluationPeriods": "1", "Threshold": "50"}),)
