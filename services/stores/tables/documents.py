"""Documents, their versions, their chunks, and what is known of a space's text."""

from __future__ import annotations

from sqlalchemy import ARRAY, BigInteger, Column, Index, Integer, LargeBinary, PrimaryKeyConstraint, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB

from services.stores.tables.base import metadata, tenant_column, time_column

documents = Table(
    "documents",
    metadata,
    tenant_column(),
    Column("id", Text, primary_key=True),
    Column("space_id", Text, nullable=False),
    Column("source", Text),
    Column("external_id", Text),
    Column("title", Text),
    Column("state", Text),
    Column("stage", Text),
    Column("live_version", Integer),
    Column("newest_version", Integer),
    Column("owner", Text),
    Column("readers", ARRAY(Text)),
    Column("access_version", Integer, nullable=False, server_default=text("1")),
    Column("tags", ARRAY(Text)),
    Column("parent_id", Text),
    Column("progress", JSONB),
    time_column("created_at"),
    time_column("updated_at"),
    time_column("tombstoned_at"),
    time_column("removed_at"),
    Index(
        "uq_documents_live_identity",
        "tenant",
        "space_id",
        "source",
        "external_id",
        unique=True,
        postgresql_where=text("tombstoned_at IS NULL"),
    ),
    Index(None, "space_id"),
    Index(None, "parent_id"),
)

document_versions = Table(
    "document_versions",
    metadata,
    tenant_column(),
    Column("document_id", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("run_id", Text),
    Column("sha256", Text),
    Column("media_type", Text),
    Column("bytes", BigInteger),
    Column("blob_key", Text),
    Column("url", Text),
    Column("text_key", Text),
    Column("parser", Text),
    Column("state", Text, nullable=False),
    Column("stage", Text),
    Column("error", JSONB),
    Column("warnings", JSONB),
    Column("coverage", JSONB),
    Column("chunks", Integer),
    Column("embeddings_made", Integer),
    time_column("created_at", nullable=False),
    time_column("published_at"),
    PrimaryKeyConstraint("document_id", "number"),
    Index(None, "tenant", "sha256"),
)

chunks = Table(
    "chunks",
    metadata,
    tenant_column(),
    Column("id", Text, primary_key=True),
    Column("document_id", Text, nullable=False),
    Column("text_hash", Text, nullable=False),
    Column("input_hash", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("embedding_input", Text, nullable=False),
    Column("tokens", Integer, nullable=False),
    Index(None, "document_id"),
    Index(None, "input_hash"),
)

version_chunks = Table(
    "version_chunks",
    metadata,
    tenant_column(),
    Column("document_id", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("chunk_id", Text, nullable=False),
    Column("start", Integer),
    Column("end", Integer),
    Column("page_start", Integer),
    Column("page_end", Integer),
    Column("heading_path", ARRAY(Text), nullable=False),
    Column("parent_start", Integer),
    Column("parent_end", Integer),
    Column("context", Text),
    Column("kind", Text, nullable=False),
    PrimaryKeyConstraint("document_id", "version", "ordinal"),
    Index(None, "chunk_id"),
)

embeddings_cache = Table(
    "embeddings_cache",
    metadata,
    tenant_column(),
    Column("model", Text, nullable=False),
    Column("input_hash", Text, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    PrimaryKeyConstraint("tenant", "model", "input_hash"),
)

space_statistics = Table(
    "space_statistics",
    metadata,
    tenant_column(),
    Column("space_id", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("vector_sum", LargeBinary, nullable=False),
    PrimaryKeyConstraint("space_id", "model"),
)
