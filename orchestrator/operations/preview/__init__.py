"""Previews: the effect of a create or an update, without side effects.

Secrets are masked where the response is built: by `create.py` for a create, by
`engine/preview/resource_forecast.py` for an update.
"""
