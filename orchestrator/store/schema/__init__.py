"""Migrations, and the schema version that code and database must agree on."""
