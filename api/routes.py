"""Routes of the application. `assemble` connects existing parts; `app.py` creates them."""

from __future__ import annotations

from typing import Final

from api.cloudformation import endpoint
from api.dependencies import Application, AppState, Dependencies
from api.layers import WSGI_LAYERS
from api.middleware import api_version
from api.monitoring import health, metrics
from api.openapi.views import openapi
from api.request import stack_lookup
from api.request_steps import begin_request, end_request, release_guard
from api.response import errors
from api.v1 import (
    adoption,
    diagnosis,
    events,
    graph,
    observation_policies,
    observations,
    outputs,
    overview,
    pictures,
    previews,
    repairs,
    resource_types,
    resources,
    revisions,
    signals,
    snapshots,
    software_configs,
    software_deployments,
    stack_documents,
    stack_maps,
    stacks,
    templates,
    timelines,
    webhooks,
)

BLUEPRINTS: Final = (
    api_version.versions,
    previews.previews,
    stacks.stacks,
    stack_lookup.lookup,
    stack_documents.documents,
    outputs.outputs,
    resources.resources,
    signals.signals,
    events.events,
    graph.graph,
    revisions.revisions,
    snapshots.snapshots,
    adoption.adoption,
    software_configs.software_configs,
    software_deployments.software_deployments,
    templates.templates,
    resource_types.catalogue,
    diagnosis.why,
    overview.overview,
    pictures.pictures,
    stack_maps.stack_maps,
    timelines.timelines,
    webhooks.webhooks,
    observation_policies.observation_policies,
    observations.observations,
    repairs.repairs,
    endpoint.cfn,
    openapi,
    metrics.metrics,
    health.health,
)


def assemble(deps: Dependencies) -> Application:
    """Return the application.

    Raises:
        Misconfigured: the authentication settings are incomplete.
    """
    app = Application("api", AppState.of(deps), WSGI_LAYERS)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False  # response/errors.py answers OPTIONS for every known path
    errors.register(app)
    app.before_request(begin_request)
    app.after_request(end_request)
    app.teardown_request(release_guard)
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
    return app
