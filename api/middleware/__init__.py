"""Steps that every request passes: access log, audit, rate limits, API version, authorization."""
