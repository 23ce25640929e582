"""Samples of Nova's types."""

from __future__ import annotations

from orchestrator.testing.samples import Sample

# A server without an image boots from a volume: an image is no change in place. Changed user data replace a
# server unless the template says otherwise.
SAMPLES = (Sample("OS::Nova::Server", answers={"image": "replace", "user_data": "replace"}),)
