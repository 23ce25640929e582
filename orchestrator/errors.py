"""All errors that the orchestrator raises deliberately, by the party that must act.

OrchestratorError
├── InvalidTemplate       the caller must fix the template or its parameters   400
├── InvalidRequest        the caller must fix the request                      400
├── NotSupported          not in this state, not for this type                 400
│   └── ResourceTypeUnavailable  its service is not installed                  400
├── LimitExceeded         a quota or size limit                                 400
├── Unauthenticated       no valid credentials                                 401
├── Forbidden             the caller lacks the permission                      403
│   └── TypeNotPermitted  the author of the revision may not use the type
├── NotFound              no such stack, resource, event                       404
├── Conflict              the stack is busy or the name is taken               409
├── TooManyRequests       orchestrator/rate_errors.py                        429
├── Unavailable           a required service does not respond                  503
│   └── RequestHung       it has hung the API; rejected for a time             503
├── ProviderError         the provider refused
│   ├── ProviderNotFound  it has no such object
│   ├── ProviderConflict  the state of an object does not permit the request
│   └── ProviderBusy      the provider refused temporarily; retry
│       ├── ProviderUnreachable    no connection to the provider
│       ├── ProviderQuotaExceeded  no quota at present
│       ├── AwaitingBudget         enough requests to it are in progress; nothing was sent
│       ├── ProviderInUse          another object does not permit the request at present
│       │   └── ProviderChanging   another change of the object is in progress
│       ├── ServiceUnavailable     its circuit breaker is open
│       ├── AbsenceInDoubt         orchestrator/engine/check/absence.py
│       └── ProviderSilent         no answer; the request may be carried out
│           ├── ProviderFailed     an internal error was the answer; the request may have been carried out
│           └── ProviderGatewayFailed  a gateway answered for it; the request may be carried out
├── WorkerHung            it has hung workers; not repeated until the next action
├── Superseded            a newer traversal owns this stack; stop quietly
└── Misconfigured         the operator must act; the message names the fix
    └── DamagedValue      a stored value is damaged: restore it from a backup

Each carries Heat's `error.type` (docs/internals/rest-api.md §2) as `heat_type`, builds its own message from
its fields, and `str(error)` is that message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final, Literal


class OrchestratorError(Exception):
    """Base class of all deliberate errors; its message is safe to show to the caller."""

    heat_type = "HeatException"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the message and the fields, independent of the constructor."""
        return _restored, (type(self), str(self), self.__dict__)


def _restored(
    error_type: type[OrchestratorError], message: str, fields: dict[str, object]
) -> OrchestratorError:
    error = error_type.__new__(error_type)
    Exception.__init__(error, message)
    error.__dict__.update(fields)
    return error


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error or warning in a template, with its location.

    `message` is Heat's text, byte for byte, where Heat has a text. `path` is dotted
    (`resources.a.properties.b[0]`). `line` and `column` count from 1; they are None if the position is
    unknown (a template sent as an object).
    """

    code: str  # our own stable code, kebab-case: "unknown-property"
    message: str
    path: str = ""
    line: int | None = None
    column: int | None = None
    file: str = ""
    excerpt: str = ""
    hint: str = ""
    severity: Literal["error", "warning"] = "error"
    heat_type: str = "StackValidationFailed"
    refused: bool = False  # a warning of a lenient check for which a create would be refused


class InvalidTemplate(OrchestratorError):
    """All faults of a template; the first is the fault that Heat would report."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Keep the faults in the order found; the sequence is not empty."""
        self.diagnostics = tuple(diagnostics)
        self.heat_type = self.diagnostics[0].heat_type
        super().__init__(self.diagnostics[0].message)


class InvalidRequest(OrchestratorError):
    """A malformed request: a missing key or an invalid query value."""

    heat_type = "HTTPBadRequest"


class NotSupported(OrchestratorError):
    """`<feature> is not supported.`"""

    heat_type = "NotSupported"

    def __init__(self, feature: str) -> None:
        """Name the feature as in docs/internals/rest-api.md §2."""
        self.feature = feature
        super().__init__(f"{feature} is not supported.")


class ResourceTypeUnavailable(NotSupported):
    """A type whose service is not installed; `ignore_errors=99001` accepts it during validation."""

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
    """A document could not be fetched. The message is Heat's; `why` is our additional explanation."""

    def __init__(self, url: str, problem: str, why: str = "") -> None:
        """Name the URL and the problem."""
        self.url, self.why = url, why
        super().__init__(problem)


class InvalidHook(InvalidRequest):
    """The hook does not exist, or the resource is not paused at it."""

    heat_type = "InvalidBreakPointHook"


class InvalidValue(InvalidRequest):
    """A value of the wrong type."""

    heat_type = "Invalid"

    def __init__(self, fault: str) -> None:
        """Describe the fault in Heat's words."""
        super().__init__(f"Data supplied was not valid: {fault}")


class AmbiguousPhysicalId(InvalidRequest):
    """Several resources of the stack have this physical id."""

    heat_type = "PhysicalResourceIDAmbiguity"

    def __init__(self, physical_id: str) -> None:
        """Name the physical id."""
        super().__init__(f"Multiple resources were found with the physical ID ({physical_id}).")


class LimitExceeded(OrchestratorError):
    """A quota or a size limit: `Request limit exceeded: …`."""

    heat_type = "RequestLimitExceeded"

    def __init__(self, limit: str) -> None:
        """Name the limit in Heat's words, without the prefix."""
        super().__init__(f"Request limit exceeded: {limit}")


class Unauthenticated(OrchestratorError):
    """No credentials, or invalid credentials."""

    heat_type = "HTTPUnauthorized"

    def __init__(self, challenge: str = "X-Auth-Token") -> None:
        """Set the value of `WWW-Authenticate`."""
        self.challenge = challenge
        super().__init__("The request you have made requires authentication.")


class Forbidden(OrchestratorError):
    """The caller is authenticated but lacks the permission."""

    heat_type = "Forbidden"


class AccessDenied(Forbidden):
    """The path belongs to another project; rejected before anything is read."""

    heat_type = "HTTPForbidden"

    def __init__(self) -> None:
        """Use the HTTP layer's text."""
        super().__init__("Access was denied to this resource.")


class TypeNotPermitted(Forbidden):
    """The author of a revision may not use a type in it."""

    def __init__(self, type_name: str) -> None:
        """Name the type."""
        super().__init__(
            f"type {type_name} is not permitted for the author of the revision: update the stack as a user"
            " who may use it"
        )


class NotFound(OrchestratorError):
    """No such object that is visible to the caller."""

    heat_type = "EntityNotFound"

    def __init__(self, kind: str, name: str, within: str = "") -> None:
        """`kind` is Heat's capitalized word: Stack, Resource, Event."""
        self.kind, self.name = kind, name
        place = f" in {within}" if within else ""
        super().__init__(f"The {kind} ({name}) could not be found{place}.")


class ResourceNotFound(NotFound):
    """The stack has no such resource."""

    heat_type = "ResourceNotFound"

    def __init__(self, name: str, stack_name: str) -> None:
        """Name the resource and the stack."""
        super().__init__("Resource", name, f"Stack {stack_name}")


class ResourceNotAvailable(NotFound):
    """The resource exists in the stack but has not been created yet."""

    heat_type = "ResourceNotAvailable"

    def __init__(self, name: str) -> None:
        """Name the resource."""
        super().__init__("Resource", name)
        OrchestratorError.__init__(self, f"The Resource ({name}) is not available.")


class Conflict(OrchestratorError):
    """The stack is busy or the name is taken."""

    heat_type = "ActionInProgress"


class ActionInProgress(Conflict):
    """The action in progress cannot be interrupted by this request."""

    def __init__(self, name: str, action: str) -> None:
        """Name the stack and its action."""
        super().__init__(f"Stack {name} already has an action ({action}) in progress.")


class StackExists(Conflict):
    """A live stack of the project has this name."""

    heat_type = "StackExists"

    def __init__(self, name: str) -> None:
        """Name the stack."""
        super().__init__(f"The Stack ({name}) already exists.")


class Unavailable(OrchestratorError):
    """A required service does not respond; the caller may retry."""

    heat_type = "HTTPServiceUnavailable"


class ProviderError(OrchestratorError):
    """The provider refused: final for this operation.

    `kind` is the class name shown in reasons (`ValueError: Test Resource failed x`), `service` the service
    that reports the error, "" for that of the resource's type.
    """

    service: str = ""

    def __init__(self, message: str, kind: str = "ProviderError") -> None:
        """Keep the provider's own message."""
        self.kind = kind
        super().__init__(message)


class ProviderNotFound(ProviderError):
    """The provider has no such object."""

    def __init__(self, message: str, kind: str = "NotFound") -> None:
        """Keep the provider's own message."""
        super().__init__(message, kind)


class ProviderConflict(ProviderError):
    """The state of an object does not permit the request."""

    def __init__(self, message: str, kind: str = "Conflict") -> None:
        """Keep the provider's own message."""
        super().__init__(message, kind)


class ProviderBusy(ProviderError):
    """The provider refused temporarily or could not be reached. The operation is tried again, and nothing is
    concluded about the object; `orchestrator/engine/check/refusals.py` has the limit of each kind.
    `retry_after` is the number of seconds that the provider asks to wait, None if it names none.
    """

    default_kind = "ProviderError"

    def __init__(self, message: str, kind: str = "", *, retry_after: float | None = None) -> None:
        """Keep the provider's own message."""
        self.retry_after = retry_after
        super().__init__(message, kind or self.default_kind)


class ProviderUnreachable(ProviderBusy):
    """The provider could not be reached: nothing was sent."""

    default_kind = "ProviderUnreachable"


class ProviderQuotaExceeded(ProviderBusy):
    """The project's quota at the provider is exhausted at present."""

    default_kind = "ProviderQuotaExceeded"


class AwaitingBudget(ProviderBusy):
    """Nothing was sent: as many requests as the service processes well are in progress. This is no failure
    of the service.
    """

    def __init__(self, service: str, retry_after: float) -> None:
        """Name the service, and the seconds until the next attempt."""
        super().__init__(f"waiting for {service}'s budget", "AwaitingBudget", retry_after=retry_after)


class ProviderInUse(ProviderBusy):
    """The state of another object does not permit the request at present, such as an object in use."""

    default_kind = "Conflict"


class ProviderChanging(ProviderInUse):
    """Another change of the object is in progress, and its end is awaited."""


class ServiceUnavailable(ProviderBusy):
    """Nothing was sent: the circuit breaker of the service is open."""

    def __init__(self, service: str, last_error: str) -> None:
        """Name the service and its last error."""
        super().__init__(f"{service} is unavailable ({last_error})", "ServiceUnavailable")


class ProviderSilent(ProviderBusy):
    """The provider did not answer in time; it may still carry out the request."""


class ProviderFailed(ProviderSilent):
    """An internal error was the answer: the request may have been carried out, but no longer will be."""


class ProviderGatewayFailed(ProviderSilent):
    """A gateway answered for the provider, which may still carry out the request."""


# Errors of a verb after which nothing is known about the object. A plugin need not translate the last two.
UNREACHABLE_ERRORS: Final = (ProviderBusy, ConnectionError, TimeoutError)
UNANSWERED_ERRORS: Final = (ProviderSilent, ConnectionError, TimeoutError)  # a request may be carried out


class Superseded(OrchestratorError):
    """A newer traversal owns this stack; stop quietly."""


class WorkerHung(OrchestratorError):
    """Work that has hung its process several times; it is not executed again."""

    heat_type = "WorkerHung"

    def __init__(self, hangs: int, position: str) -> None:
        """Take the number of hangs, and the position of the last one, "" if unknown."""
        place = f", in {position}" if position else ""
        super().__init__(
            f"Its processing hung a worker {hangs} times{place}. It is not repeated before the next action "
            "of the stack."
        )
        self.hangs, self.position = hangs, position


class RequestHung(Unavailable):
    """A request that has hung the process of the API several times; it is rejected for a time."""

    heat_type = "RequestHung"

    def __init__(self, hangs: int, position: str, seconds: int) -> None:
        """Take the number of hangs, the position of the last one ("" if unknown), and the time until the
        request is processed again.
        """
        place = f", in {position}" if position else ""
        super().__init__(
            f"This request hung a process of the API {hangs} times{place}. It is rejected for "
            f"{seconds // 60} minutes. Tell the operator, or change the request."
        )
        self.retry_seconds = seconds


class Misconfigured(OrchestratorError):
    """The installation is misconfigured; the message names the setting or command that fixes it."""


class DamagedValue(Misconfigured):
    """A stored value is not what was stored."""


_MAX_LENGTH = 80  # characters; typing errors in longer names are unlikely, and the comparison is quadratic


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return ``did you mean "x"?`` for the most similar other name in `known`, "" if none is similar."""
    if not isinstance(word, str) or len(word) > _MAX_LENGTH:
        return ""
    near = _nearest(word, tuple(name for name in known if name != word))
    return f'did you mean "{near}"?' if near else ""


@lru_cache(maxsize=1024)  # a mistake repeated in a thousand resources is compared once
def _nearest(word: str, known: tuple[str, ...]) -> str:
    lowered = word.lower()
    same = next((name for name in known if name.lower() == lowered), None)
    return same or next(iter(get_close_matches(word, known, n=1)), "")
