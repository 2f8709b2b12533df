"""The embedded engines of one machine: Postgres, Temporal and Kafka as supervised children of `perdure up`."""

from infra.local_stack.data_dir import DataDir, DataDirHeld, DataDirUnusable, Holder
from infra.local_stack.stack import EngineAddresses, LocalStack

__all__ = ["DataDir", "DataDirHeld", "DataDirUnusable", "EngineAddresses", "Holder", "LocalStack"]
