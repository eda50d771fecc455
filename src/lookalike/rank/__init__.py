"""A query to ordered candidates."""
