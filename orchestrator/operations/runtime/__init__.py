"""State that a worker process keeps between checks: caches, lease renewal, the dispatch window."""
