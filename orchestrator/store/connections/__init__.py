"""Connection pools, prepared statements, batching and streaming."""
