"""Documents, versions, chunks and vectors."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from infra.migrations.row_level_security import protect

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TENANT_TABLES = (
    "chunks",
    "document_versions",
    "documents",
    "embeddings_cache",
    "space_statistics",
    "version_chunks",
)


def upgrade() -> None:
    for create in (
        _chunks,
        _document_versions,
        _documents,
        _embeddings_cache,
        _space_statistics,
        _version_chunks,
    ):
        create()
    protect(TENANT_TABLES)


def _chunks() -> None:
    op.create_table(
        "chunks",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("text_hash", sa.Text(), nullable=False),
        sa.Column("input_hash", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("embedding_input", sa.Text(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chunks")),
    )
    op.create_index(op.f("ix_chunks_document_id"), "chunks", ["document_id"], unique=False)
    op.create_index(op.f("ix_chunks_input_hash"), "chunks", ["input_hash"], unique=False)


def _document_versions() -> None:
    op.create_table(
        "document_versions",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.Column("media_type", sa.Text(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("blob_key", sa.Text(), nullable=True),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("text_key", sa.Text(), nullable=True),
        sa.Column("parser", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=True),
        sa.Column("error", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("warnings", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("coverage", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("chunks", sa.Integer(), nullable=True),
        sa.Column("embeddings_made", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("document_id", "number", name=op.f("pk_document_versions")),
    )
    op.create_index(op.f("ix_document_versions_tenant_sha256"), "document_versions", ["tenant", "sha256"], unique=False)


def _documents() -> None:
    op.create_table(
        "documents",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("space_id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=True),
        sa.Column("stage", sa.Text(), nullable=True),
        sa.Column("live_version", sa.Integer(), nullable=True),
        sa.Column("newest_version", sa.Integer(), nullable=True),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("readers", sa.ARRAY(sa.Text()), nullable=True),
        sa.Column("access_version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("tags", sa.ARRAY(sa.Text()), nullable=True),
        sa.Column("parent_id", sa.Text(), nullable=True),
        sa.Column("progress", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tombstoned_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("removed_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_documents")),
    )
    op.create_index(op.f("ix_documents_parent_id"), "documents", ["parent_id"], unique=False)
    op.create_index(op.f("ix_documents_space_id"), "documents", ["space_id"], unique=False)
    op.create_index(
        "uq_documents_live_identity",
        "documents",
        ["tenant", "space_id", "source", "external_id"],
        unique=True,
        postgresql_where=sa.text("tombstoned_at IS NULL"),
    )


def _embeddings_cache() -> None:
    op.create_table(
        "embeddings_cache",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("input_hash", sa.Text(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "model", "input_hash", name=op.f("pk_embeddings_cache")),
    )


def _space_statistics() -> None:
    op.create_table(
        "space_statistics",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("space_id", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("chunks", sa.Integer(), nullable=False),
        sa.Column("vector_sum", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("space_id", "model", name=op.f("pk_space_statistics")),
    )


def _version_chunks() -> None:
    op.create_table(
        "version_chunks",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("chunk_id", sa.Text(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=True),
        sa.Column("end", sa.Integer(), nullable=True),
        sa.Column("page_start", sa.Integer(), nullable=True),
        sa.Column("page_end", sa.Integer(), nullable=True),
        sa.Column("heading_path", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("parent_start", sa.Integer(), nullable=True),
        sa.Column("parent_end", sa.Integer(), nullable=True),
        sa.Column("context", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("document_id", "version", "ordinal", name=op.f("pk_version_chunks")),
    )
    op.create_index(op.f("ix_version_chunks_chunk_id"), "version_chunks", ["chunk_id"], unique=False)
