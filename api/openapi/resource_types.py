"""What there is to make stacks of: validation, types, versions; and the service itself."""

from __future__ import annotations

from typing import Any, Final, Literal

from api.openapi.operation import JSON, Answer, Operation, Operations, Shape, done, maybe, ok, told
from api.openapi.shapes import UUID, Id, JsonMap, Link, Time
from api.openapi.stacks import Made

TAG: Final = "catalogue"
SOFTWARE: Final = "software"
SERVICE: Final = "service"
SIGNED: Final = "signed"
XML: Final = "application/xml"


class ParameterShown(Shape):
    """A parameter of a template."""

    Type: str = told("String, Number, CommaDelimitedList, Json or Boolean.", "Number")
    Description: str = told("What the template says of it.", "")
    NoEcho: str = told("Whether its value is hidden: a text.", "false")
    Label: str = told("Its name for people.", "length")
    Default: Any = maybe("Its default.", 12)


class Validated(Shape):
    """What a template asks for."""

    Description: str = told("The template's.", "Two of them")
    Parameters: dict[str, ParameterShown] = told("By name.")
    ParameterGroups: list[Any] | None = maybe("How they belong together.")
    NestedParameters: JsonMap | None = maybe("Those of nested templates, by resource.")
    Environment: JsonMap | None = maybe("The environment as it was understood.", {})
    warnings: list[Any] | None = maybe("What may be a mistake, when asked for. Ours.")


class ValidateQuery(Shape):
    """How to validate."""

    show_nested: bool | None = maybe("What is inside nested templates too.", False)
    ignore_errors: str | None = maybe("Codes of errors to overlook, commas between them.", "99001")
    with_warnings: bool | None = maybe("What may be a mistake, too. Ours.", False)


class TypeNamed(Shape):
    """A type with its description."""

    resource_type: str = told("Its name.", "OS::Heat::RandomString")
    description: str = told("What it is.", "A random string, made once and kept.")


class TypeList(Shape):
    """The types, sorted."""

    resource_types: list[str | TypeNamed] = told(
        "Names, or names with descriptions.", ["OS::Heat::RandomString"]
    )


class TypeListQuery(Shape):
    """Which types are listed."""

    support_status: Literal["UNKNOWN", "SUPPORTED", "DEPRECATED", "UNSUPPORTED", "HIDDEN"] | None = maybe(
        "In this state of support.", "SUPPORTED"
    )
    name: str | None = maybe("A regular expression, matched from the start.", "OS::Heat")
    version: str | None = maybe("Supported since this version.", "5.0.0")
    with_description: bool | None = maybe("With descriptions.", False)


class TypeShow(Shape):
    """A type."""

    resource_type: str = told("Its name.", "OS::Heat::RandomString")
    properties: JsonMap = told("Its properties by name.", {"length": {"type": "integer", "required": False}})
    attributes: JsonMap = told("Its attributes by name.", {"value": {"description": "The string."}})
    support_status: JsonMap = told("Whether it will stay.", {"status": "SUPPORTED"})
    description: str | None = maybe("What it is.")


class TypeQuery(Shape):
    """How a type is shown."""

    with_description: bool | None = maybe("With its description.", False)


class TypeTemplateQuery(Shape):
    """The language of the template."""

    template_type: Literal["cfn", "hot"] | None = maybe("cfn unless said.", "hot")


class Version(Shape):
    """A version of the language."""

    version: str = told("Its key and date.", "heat_template_version.2021-04-16")
    type: str = told("hot or cfn.", "hot")
    aliases: list[str] = told("Its other names.", ["heat_template_version.wallaby"])


class VersionList(Shape):
    """The versions of the language."""

    template_versions: list[Version] = told("The versions.")


class Function(Shape):
    """A function of the language."""

    functions: str = told("Its name; the key is a plural.", "get_attr")
    description: str = told("What it gives.", "A function for resolving resource attributes.")


class FunctionList(Shape):
    """The functions of a version."""

    template_functions: list[Function] = told("The functions.")


class FunctionQuery(Shape):
    """Which functions are listed."""

    with_condition_func: bool | None = maybe("Those of conditions too.", False)


class Build(Shape):
    """Which builds answer."""

    api: JsonMap = told("The API's.", {"revision": "unknown"})
    engine: JsonMap = told("The workers'.", {"revision": "unknown"})


class ConfigListed(Shape):
    """A software config in a list."""

    id: Id
    name: str | None = told("Its name.", "install")
    group: str | None = told("What carries it out.", "script")
    creation_time: Time
    project: str | None = maybe("Whose it is.")


class Config(ConfigListed):
    """A software config."""

    config: Any = told("The text.", "#!/bin/sh\necho hello")
    inputs: list[Any] = told("What it is given.", [])
    outputs: list[Any] = told("What it gives.", [])
    options: Any = told("For what carries it out.", {})


class ConfigList(Shape):
    """A page of configs."""

    software_configs: list[ConfigListed] = told("The newest first.")


class ConfigShow(Shape):
    """A config."""

    software_config: Config = told("The config.")


class ConfigCreate(Shape):
    """A new config."""

    name: str | None = maybe("Its name.", "install")
    group: str | None = maybe("What carries it out.", "script")
    config: Any = maybe("The text.", "#!/bin/sh\necho hello")
    inputs: list[JsonMap] | None = maybe("What it is given.", [{"name": "who", "type": "String"}])
    outputs: list[JsonMap] | None = maybe("What it gives.", [{"name": "result"}])
    options: Any = maybe("For what carries it out.", {})


class ConfigQuery(Shape):
    """Which configs are listed."""

    limit: int | None = maybe("At most so many.", 100, ge=0)
    marker: str | None = maybe("Go on after the one with this id.", UUID)
    global_tenant: bool | None = maybe("Those of all projects: for nobody unless a policy says so.", False)


class Deployment(Shape):
    """A config for a machine."""

    id: Id
    server_id: str = told("The machine.", UUID)
    config_id: Any = told("The config.", UUID)
    input_values: Any = told("What the config is given.", {"who": "world"})
    output_values: Any = told("What it gave.", {})
    action: str | None = told("For which action.", "CREATE")
    status: str | None = told("How far it is.", "IN_PROGRESS")
    status_reason: str | None = told("Why.", None)
    creation_time: Time
    updated_time: Time | None = maybe("When it was last changed.")


class DeploymentList(Shape):
    """Deployments."""

    software_deployments: list[Deployment] = told("The oldest first.")


class DeploymentShow(Shape):
    """A deployment."""

    software_deployment: Deployment = told("The deployment.")


class DeploymentUpdate(Shape):
    """What becomes of a deployment; what is null stays."""

    config_id: str | None = maybe("Another config.", UUID)
    input_values: JsonMap | None = maybe("What the config is given.", {"who": "world"})
    output_values: JsonMap | None = maybe("What it gave.", {})
    action: str | None = maybe("For which action.", "CREATE")
    status: str | None = maybe("How far it is.", "COMPLETE")
    status_reason: str | None = maybe("Why.", "Outputs received")


class DeploymentCreate(DeploymentUpdate):
    """A config for a machine."""

    config_id: str = told("The config.", UUID)
    server_id: str = told("The machine.", UUID)
    stack_user_project_id: str | None = maybe("The project of its users.", "demo", max_length=64)


class DeploymentQuery(Shape):
    """Which deployments are listed."""

    server_id: str | None = maybe("Those of one machine.", UUID)


class MachineConfigs(Shape):
    """The configs that a machine is to carry out."""

    metadata: list[Any] = told("Sorted by name.", [])


class VersionRoot(Shape):
    """A version of the API."""

    id: str = told("Its name.", "v1.0")
    status: str = told("CURRENT.", "CURRENT")
    links: list[Link] = told("`self`.")


class VersionsRoot(Shape):
    """The versions of the API."""

    versions: list[VersionRoot] = told("The versions.")


class Service(Shape):
    """A worker."""

    id: Id
    engine_id: Id
    binary: str = told("What runs.", "orchestrator-worker")
    host: str = told("Its name.", "check1@web")
    hostname: str = told("Its machine.", "web")
    topic: str = told("The queues it reads.", "check,observe,bulk")
    report_interval: int = told("Seconds between two signs of life.", 20)
    created_at: str = told("Since when it runs.", "2026-01-01T12:00:00.000000")
    updated_at: str = told("When it was last heard of.", "2026-01-01T12:00:20.000000")
    deleted_at: str | None = told("Never said.", None)
    status: Literal["up", "down"] = told("down: it fell silent.", "up")


class ServiceList(Shape):
    """The workers."""

    services: list[Service] = told("The workers.")


class VersionOfProject(Shape):
    """The version that answers here."""

    version: VersionRoot = told("The version.")


class Health(Shape):
    """How the service is."""

    status: str = told("ok, degraded (without what requests can do without) or failed.", "ok")
    parts: JsonMap | None = maybe("Each part: its status, how long it took, the reason.")


class Signalled(Shape):
    """What was signalled at."""

    resource: str = told("The resource.", "handle")
    metadata: Any = told("Its metadata.", {})


GONE: Final = frozenset({409})
REFUSED: Final = {
    status: Answer(text, str, XML, also={JSON: JsonMap})
    for status, text in (
        (400, "Refused, with Amazon's code; JSON with `ContentType=JSON`."),
        (403, "The signature does not open this; JSON with `ContentType=JSON`."),
    )
}

OPERATIONS: Final[Operations] = {
    "templates.validate": Operation(TAG, ok("What it asks for.", Validated), ValidateQuery, Made),
    "templates.version_index": Operation(TAG, ok("The versions.", VersionList)),
    "templates.function_index": Operation(TAG, ok("The functions.", FunctionList), FunctionQuery),
    "catalogue.type_index": Operation(TAG, ok("The types.", TypeList), TypeListQuery),
    "catalogue.type_schema": Operation(TAG, ok("The type.", TypeShow), TypeQuery),
    "catalogue.type_template": Operation(TAG, ok("The template.", JsonMap), TypeTemplateQuery),
    "catalogue.build_info": Operation(SERVICE, ok("The builds.", Build)),
    "software_configs.index": Operation(SOFTWARE, ok("The configs.", ConfigList), ConfigQuery),
    "software_configs.create": Operation(SOFTWARE, ok("The config.", ConfigShow), body=ConfigCreate),
    "software_configs.show": Operation(SOFTWARE, ok("The config.", ConfigShow)),
    "software_configs.delete": Operation(SOFTWARE, done(204, "Gone."), refuses=GONE),
    "software_deployments.index": Operation(
        SOFTWARE, ok("The deployments.", DeploymentList), DeploymentQuery
    ),
    "software_deployments.metadata": Operation(SOFTWARE, ok("The configs.", MachineConfigs)),
    "software_deployments.create": Operation(
        SOFTWARE, ok("The deployment.", DeploymentShow), body=DeploymentCreate
    ),
    "software_deployments.show": Operation(SOFTWARE, ok("The deployment.", DeploymentShow)),
    "software_deployments.update": Operation(
        SOFTWARE, ok("The deployment.", DeploymentShow), body=DeploymentUpdate
    ),
    "software_deployments.delete": Operation(SOFTWARE, done(204, "Gone.")),
    "versions.root": Operation(
        SERVICE,
        {300: Answer("The versions.", VersionsRoot)},
        secured="nobody",
        text="Any version but ours, too.",
    ),
    "versions.healthcheck": Operation(
        SERVICE, {200: Answer("It answers.", str, "text/plain")}, secured="nobody"
    ),
    "catalogue.services": Operation(
        SERVICE, ok("The workers.", ServiceList), refuses=frozenset({503}), text="For administrators."
    ),
    "versions.of_project": Operation(
        SERVICE, ok("The version.", VersionOfProject), secured="nobody", path="/v1/{project_id}"
    ),
    "health.live": Operation(SERVICE, ok("It answers.", Health), secured="nobody"),
    "health.ready": Operation(
        SERVICE,
        {200: Answer("Requests can be answered.", Health), 503: Answer("They cannot.", Health)},
        secured="nobody",
    ),
    "metrics.show": Operation(
        SERVICE, {200: Answer("The figures, as Prometheus reads them.", str, "text/plain")}, secured="nobody"
    ),
    "openapi.document": Operation(SERVICE, ok("This document.", JsonMap), secured="nobody"),
    "openapi.page": Operation(SERVICE, {200: Answer("A page.", str, "text/html")}, secured="nobody"),
    "cfn.wait_condition": Operation(
        SIGNED, {**ok("Taken on.", Signalled), **REFUSED}, body=Any, body_required=False, secured="signature"
    ),
    "cfn.signal": Operation(
        SIGNED, {**ok("Taken on.", type(None)), **REFUSED}, body=Any, body_required=False, secured="signature"
    ),
}
