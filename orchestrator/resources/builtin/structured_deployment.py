"""OS::Heat::StructuredDeployment: a deployment that puts its inputs into the config
(docs/internals/resource-types.md §A9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.errors import ProviderError
from orchestrator.resources.base import Property, Value
from orchestrator.resources.builtin import software_io as io
from orchestrator.resources.builtin.software_deployment import SoftwareDeployment
from orchestrator.schema.constraints import AllowedValues


class StructuredDeployment(SoftwareDeployment):
    """As OS::Heat::SoftwareDeployment, for tools that know no inputs: `{get_input: x}` becomes its value."""

    name = "OS::Heat::StructuredDeployment"
    properties = {
        **SoftwareDeployment.properties,
        "input_key": Property("string", "The key that marks a reference to an input.", default="get_input"),
        "input_values_validate": Property(
            "string",
            "Whether a reference to an unset input is an error.",
            default="LAX",
            constraints=(AllowedValues(("LAX", "STRICT")),),
        ),
    }
    empty: Value = {}

    def derive(
        self, config: Value, inputs: Sequence[Mapping[str, Value]], props: Mapping[str, Value]
    ) -> Value:
        """Return the config with the values of its inputs.

        Raises:
            ProviderError: an input is not set although it is required.
        """
        strict = props.get("input_values_validate") == "STRICT"
        key = props.get("input_key") or "get_input"
        try:
            return io.substitute(config, io.values_of(inputs), key, strict=strict)
        except io.MissingInput as error:
            message = f"The Parameter ({error}) was not provided."
            raise ProviderError(message, kind="UserParameterMissing") from None
