"""Reads for pictures of stacks of any size (engine/pictures): rows are reduced by PostgreSQL and streamed."""
