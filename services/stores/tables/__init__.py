"""Every table of Perdure. Each row belongs to one tenant; row-level security is laid on by the migrations."""

from services.stores.tables import agents, documents, facts, identity, runs
from services.stores.tables.base import metadata

__all__ = ["agents", "documents", "facts", "identity", "metadata", "runs"]
