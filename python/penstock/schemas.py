"""Forwards to `penstock.io.schemas`, whose names are public under this path as well."""

from penstock.io.schemas import SchemaLike, read_schema, schema_of_class

__all__ = ["SchemaLike", "read_schema", "schema_of_class"]
