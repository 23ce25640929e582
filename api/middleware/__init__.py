"""Steps common to all requests: access log, audit, rate limits, API version, authorization."""
