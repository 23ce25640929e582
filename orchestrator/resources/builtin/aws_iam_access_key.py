"""AWS::IAM::AccessKey: a key with which a user of the stack signs requests
(docs/internals/resource-types.md §A10).
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.errors import ProviderError
from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Grant,
    Observation,
    Property,
    ResourceType,
    Value,
)
from orchestrator.resources.ec2_signatures import access_key, new_secret
from orchestrator.schema.constraints import AllowedValues


class IamAccessKey(ResourceType):
    """A key of a user; its id is the public part."""

    name = "AWS::IAM::AccessKey"
    calls_out = False
    claimed_first = True
    properties = {
        "Serial": Property("integer", "Not used.", implemented=False),
        "UserName": Property("string", "The name of the user who owns the key.", required=True),
        "Status": Property(
            "string",
            "Not used.",
            implemented=False,
            constraints=(AllowedValues(("Active", "Inactive")),),
        ),
    }
    attributes = {
        "UserName": Attribute("The name of the user who owns the key.", type="string"),
        "SecretAccessKey": Attribute("The key for signing requests.", type="string", secret=True),
    }

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create an access key for a user of this stack."""
        user = ctx.required_resources.find(props["UserName"])
        if user is None or user.type != "AWS::IAM::User":
            raise ProviderError(f"could not find user {props['UserName']}", "NotFound")
        key, secret = access_key(ctx.token), new_secret()
        grant = Grant(key, secret, user=props["UserName"])
        return Created(key, {"secret_key": secret}, secret=True, access=grant)

    def find(self, ctx: Context, token: str) -> str | None:
        """Return None: the key exists only in our own rows."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Show the key."""
        if ctx.action == "DELETE":
            return Observation(exists=False)
        attributes = {
            "UserName": ctx.properties["UserName"],
            "SecretAccessKey": ctx.data.get("secret_key", "000-000-000"),
        }
        return Observation(exists=True, attributes=attributes)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to delete: the access is revoked with the resource."""
