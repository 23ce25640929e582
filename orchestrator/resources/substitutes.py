"""Deprecated types, and the types that take over their resources when a template changes its type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SUBSTITUTES: Final[Mapping[str, str]] = {
    "OS::Heat::SoftwareDeployments": "OS::Heat::SoftwareDeploymentGroup",
    "OS::Heat::StructuredDeployments": "OS::Heat::StructuredDeploymentGroup",
}
