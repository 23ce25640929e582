"""Without authentication the API listens on the local machine only."""

from __future__ import annotations

import pytest

from orchestrator.config import Settings
from orchestrator.errors import Misconfigured
from orchestrator.security.bind_address import require_safe_binding


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "localhost", "::1"])
def test_listening_on_this_machine_needs_no_authentication(host: str) -> None:
    require_safe_binding(Settings(host=host, auth="none"))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org", "127.example.org", ""])
def test_listening_elsewhere_without_authentication_is_refused(host: str) -> None:
    with pytest.raises(Misconfigured, match="ORCHESTRATOR_AUTH=token"):
        require_safe_binding(Settings(host=host, auth="none"))


def test_listening_elsewhere_with_tokens_is_allowed() -> None:
    require_safe_binding(Settings(host="0.0.0.0", auth="token"))
