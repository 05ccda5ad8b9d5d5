"""Generators of synthetic records to be audited: one leaks on purpose, some by nature, one is private."""
