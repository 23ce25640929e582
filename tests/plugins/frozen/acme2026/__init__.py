"""Resource types written against docs/plugins.md of November 2026: frozen, never to be edited."""
