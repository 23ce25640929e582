"""Software configuration: types with configs and deployments in their own tables."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.resources.base import Context
from orchestrator.testing.samples import Sample
from tests.contract.software_memory import SoftwareMemory


def stored(ctx: Context) -> Context:
    """Give a resource its own store."""
    return replace(ctx, software=SoftwareMemory())


OUTPUTS = frozenset({"deploy_stdout", "deploy_stderr", "deploy_status_code"})
SILENT = {"server": "one", "signal_transport": "NO_SIGNAL"}


SAMPLES = (
    Sample("OS::Heat::CloudConfig", {"cloud_config": {"packages": ["git"]}}, prepare_context=stored),
    Sample("OS::Heat::DeployedServer", prepare_context=stored),
    Sample("OS::Heat::MultipartMime", {"parts": [{"config": "echo"}]}, prepare_context=stored),
    Sample(
        "OS::Heat::SoftwareComponent",
        {"configs": [{"tool": "script"}]},
        changes={"configs": [{"tool": "script", "actions": ["DELETE"]}]},
        prepare_context=stored,
    ),
    Sample("OS::Heat::SoftwareConfig", {"config": "echo"}, prepare_context=stored),
    Sample("OS::Heat::StructuredConfig", {"config": {"a": [1]}}, prepare_context=stored),
    *(
        Sample(
            name,
            SILENT,
            prepare_context=stored,
            optional=OUTPUTS,
            slow_changes=frozenset({"config"}),  # requires a second config
            signals=(("it", {}),),  # if it is changed to wait for a signal
        )
        for name in ("OS::Heat::SoftwareDeployment", "OS::Heat::StructuredDeployment")
    ),
    *(
        Sample(
            f"OS::Heat::{word}DeploymentGroup",
            {"servers": {"a": "one", "b": "two"}, "signal_transport": "NO_SIGNAL"},
            changes={"servers": {"b": "two", "c": "three"}},
            slow_changes=frozenset({"config", "signal_transport"}),
        )
        for word in ("Software", "Structured")
    ),
)
