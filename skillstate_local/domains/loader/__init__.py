"""Domains authored in YAML."""

from skillstate_local.domains.loader.load import Loaded, load_domain, read_domain

__all__ = ["Loaded", "load_domain", "read_domain"]
