"""Pictures of a stack: rows of the store combined with the pure functions of engine/pictures."""
