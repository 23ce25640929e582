"""Our format: the latest version of HOT, under its own key and with an additional function."""

from __future__ import annotations

from dataclasses import replace

from acme_dialect.functions import SHOUT
from orchestrator.template import versions
from orchestrator.template.hot import hot

HOT = hot(versions.LATEST)

FORMATS = (
    replace(
        HOT,
        key="acme_template_version",
        version="1",
        aliases=("one",),
        functions={**HOT.functions, SHOUT.name: SHOUT},
    ),
)
