"""Every error the orchestrator raises on purpose, cut by who must act.

OrchestratorError
├── InvalidTemplate       the caller must fix the template or its parameters   400
├── InvalidRequest        the caller must fix the request                      400
├── NotSupported          not in this state, not for this type                 400
│   └── ResourceTypeUnavailable  its service is not there                      400
├── LimitExceeded         a quota or a size                                    400
├── Unauthenticated       nobody we know                                       401
├── Forbidden             the caller may not                                   403
├── NotFound              no such stack, resource, event                       404
├── Conflict              the stack is busy or the name is taken               409
├── TooManyRequests       too many requests in a short time                    429
├── Unavailable           what an answer needs does not answer                 503
├── ProviderError         the cloud refused
│   └── ProviderBusy      the cloud refused for now; try again
├── Superseded            a newer traversal owns this stack; stop quietly
└── Misconfigured         the operator must act: says what to set or run

Each carries Heat's `error.type` (docs/internals/rest-api.md §2) as `heat_type`, builds its own message from
its fields, and `str(error)` is that message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal


class OrchestratorError(Exception):
    """The root: everything raised on purpose, safe to show to the caller."""

    heat_type = "HeatException"

    def __reduce__(self) -> tuple[Any, ...]:
        """Cross a process boundary as the message and the fields, whatever the constructor takes."""
        return _restored, (type(self), str(self), self.__dict__)


def _restored(kind: type[OrchestratorError], message: str, fields: dict[str, Any]) -> OrchestratorError:
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    error.__dict__.update(fields)
    return error


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One fault or warning of a template, with its place.

    `message` is what Heat would say, word for word, where Heat says something. `path` is dotted
    (`resources.a.properties.b[0]`),
    `line` and `column` count from 1 and are None when the text's position is not known (a template sent as an
    object).
    """

    code: str  # stable and ours, kebab-case: "unknown-property"
    message: str
    path: str = ""
    line: int | None = None
    column: int | None = None
    file: str = ""
    excerpt: str = ""
    hint: str = ""
    severity: Literal["error", "warning"] = "error"
    heat_type: str = "StackValidationFailed"


class InvalidTemplate(OrchestratorError):
    """One template's faults, all of them; the first is what Heat would have said."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Keep the faults in the order found; there is at least one."""
        self.diagnostics = tuple(diagnostics)
        self.heat_type = self.diagnostics[0].heat_type
        super().__init__(self.diagnostics[0].message)


class InvalidRequest(OrchestratorError):
    """A request that cannot be understood: a missing key, a wrong query value."""

    heat_type = "HTTPBadRequest"


class NotSupported(OrchestratorError):
    """`<feature> is not supported.`"""

    heat_type = "NotSupported"

    def __init__(self, feature: str) -> None:
        """Name the feature as in docs/internals/rest-api.md §2."""
        self.feature = feature
        super().__init__(f"{feature} is not supported.")


class ResourceTypeUnavailable(NotSupported):
    """A type whose service is not there; `ignore_errors=99001` overlooks it while validating."""

    heat_type = "ResourceTypeUnavailable"
    code = "99001"

    def __init__(self, type_name: str, service: str, reason: str) -> None:
        """Name the type as the template does, and the service as Heat calls its client: nova, neutron."""
        self.feature, self.type_name, self.service, self.reason = type_name, type_name, service, reason
        OrchestratorError.__init__(
            self,
            f"HEAT-E{self.code} Service {service} is not available for resource type {type_name}, "
            f"reason: {reason}",
        )


class ActionNotSupported(NotSupported):
    """The type of a resource does not support an action. The message begins with Heat's."""

    heat_type = "ResourceActionNotSupported"

    def __init__(self, action: str, resource: str, type_name: str) -> None:
        """Name the action, the resource and its type."""
        super().__init__(action)
        OrchestratorError.__init__(
            self, f"{action} is not supported for resource. (resource: {resource}, type: {type_name})"
        )


class CouldNotFetch(InvalidRequest):
    """The text at an address could not be had; the message is Heat's, `why` what there is to say besides."""

    def __init__(self, url: str, problem: str, why: str = "") -> None:
        """Name the address and the problem."""
        self.url, self.why = url, why
        super().__init__(problem)


class InvalidHook(InvalidRequest):
    """No hook of that name, or the resource does not wait at it."""

    heat_type = "InvalidBreakPointHook"


class InvalidValue(InvalidRequest):
    """A value that is of the wrong kind."""

    heat_type = "Invalid"

    def __init__(self, what: str) -> None:
        """Say what is wrong with it, in Heat's words."""
        super().__init__(f"Data supplied was not valid: {what}")


class AmbiguousPhysicalId(InvalidRequest):
    """Several resources of the stack have that physical id."""

    heat_type = "PhysicalResourceIDAmbiguity"

    def __init__(self, physical_id: str) -> None:
        """Name it."""
        super().__init__(f"Multiple resources were found with the physical ID ({physical_id}).")


class LimitExceeded(OrchestratorError):
    """A quota or a size: `Request limit exceeded: …`."""

    heat_type = "RequestLimitExceeded"

    def __init__(self, what: str) -> None:
        """Say which limit, in Heat's words, without the prefix."""
        super().__init__(f"Request limit exceeded: {what}")


class TooManyRequests(OrchestratorError):
    """More requests than a caller or a project may send."""

    heat_type = "HTTPTooManyRequests"

    def __init__(self, who: str, rate: float, retry_seconds: int) -> None:
        """Say whose requests they are, how many a second are good, and when the next one is."""
        self.retry_seconds = retry_seconds
        super().__init__(
            f"{who} may send {rate:g} requests a second. Send the next one in {retry_seconds} s."
        )


class Unauthenticated(OrchestratorError):
    """No token, or none we know."""

    heat_type = "HTTPUnauthorized"

    def __init__(self, challenge: str = "X-Auth-Token") -> None:
        """Take what `WWW-Authenticate` says."""
        self.challenge = challenge
        super().__init__("The request you have made requires authentication.")


class Forbidden(OrchestratorError):
    """The caller is known and may not."""

    heat_type = "Forbidden"


class AccessDenied(Forbidden):
    """The path is another project's: refused before anything is looked at."""

    heat_type = "HTTPForbidden"

    def __init__(self) -> None:
        """Say so as the HTTP layer does."""
        super().__init__("Access was denied to this resource.")


class NotFound(OrchestratorError):
    """Nothing of that kind and name that the caller may see."""

    heat_type = "EntityNotFound"

    def __init__(self, kind: str, name: str, within: str = "") -> None:
        """`kind` is Heat's capitalised word: Stack, Resource, Event."""
        self.kind, self.name = kind, name
        place = f" in {within}" if within else ""
        super().__init__(f"The {kind} ({name}) could not be found{place}.")


class ResourceNotFound(NotFound):
    """The stack has no such resource."""

    heat_type = "ResourceNotFound"

    def __init__(self, name: str, stack_name: str) -> None:
        """Name both."""
        super().__init__("Resource", name, f"Stack {stack_name}")


class ResourceNotAvailable(NotFound):
    """The stack has such a resource, but it is not made yet."""

    heat_type = "ResourceNotAvailable"

    def __init__(self, name: str) -> None:
        """Name it."""
        super().__init__("Resource", name)
        OrchestratorError.__init__(self, f"The Resource ({name}) is not available.")


class Conflict(OrchestratorError):
    """The stack is busy or the name is taken."""

    heat_type = "ActionInProgress"


class ActionInProgress(Conflict):
    """The stack is doing something that may not be interrupted by this."""

    def __init__(self, name: str, action: str) -> None:
        """Name the stack and what it is doing."""
        super().__init__(f"Stack {name} already has an action ({action}) in progress.")


class StackExists(Conflict):
    """The name is taken by a live stack of the project."""

    heat_type = "StackExists"

    def __init__(self, name: str) -> None:
        """Name the stack."""
        super().__init__(f"The Stack ({name}) already exists.")


class Unavailable(OrchestratorError):
    """A service that every answer needs does not answer; the caller may try again."""

    heat_type = "HTTPServiceUnavailable"


class TooManyStreams(OrchestratorError):
    """This API process already serves its maximum number of event streams."""

    heat_type = "HTTPServiceUnavailable"


class ProviderError(OrchestratorError):
    """The provider refused: final for this operation.

    `kind` is the class name shown in reasons (`ValueError: Test Resource failed x`).
    """

    def __init__(self, message: str, kind: str = "ProviderError") -> None:
        """Keep the provider's own words."""
        self.kind = kind
        super().__init__(message)


class ProviderBusy(ProviderError):
    """The provider refused for now, or could not be reached; worth another try."""


class ProviderSilent(ProviderBusy):
    """The provider was asked and did not answer in time: what was asked for may still be carried out."""


class Superseded(OrchestratorError):
    """A newer traversal owns this stack; stop quietly."""


class Misconfigured(OrchestratorError):
    """The installation is wrong; the message says what to set or which command to run."""
