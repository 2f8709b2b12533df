"""What Postgres holds, read past the API: a durability test proves the facts themselves."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.rows import dict_row
from sqlalchemy import make_url


class Facts:
    """Reads the database of a running Perdure, of all tenants."""

    def __init__(self, database_url: str) -> None:
        self._url = make_url(database_url).set(drivername="postgresql").render_as_string(hide_password=False)

    def rows(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        with psycopg.connect(self._url, row_factory=dict_row) as connection:
            connection.execute("SELECT set_config('perdure.tenant', '*', false)")
            return connection.execute(query.encode(), parameters).fetchall()

    def run(self, run_id: str) -> dict[str, Any]:
        (row,) = self.rows("SELECT * FROM runs WHERE id = %s", run_id)
        return row

    def newest_run(self, kind: str) -> str:
        (row,) = self.rows("SELECT id FROM runs WHERE kind = %s ORDER BY created_at DESC LIMIT 1", kind)
        return str(row["id"])

    def runs_of(self, document_id: str) -> list[str]:
        return [row["id"] for row in self.rows("SELECT id FROM runs WHERE subject = %s ORDER BY id", document_id)]

    def open_runs(self) -> list[dict[str, Any]]:
        return self.rows("SELECT id, kind, state, subject, waiting_for FROM runs WHERE ended_at IS NULL")

    def run_events(self, run_id: str) -> list[dict[str, Any]]:
        return self.rows("SELECT seq, epoch, type, data FROM run_events WHERE run_id = %s ORDER BY seq", run_id)

    def stream(self, stream: str) -> list[dict[str, Any]]:
        query = "SELECT stream_version, type, data FROM domain_events WHERE stream = %s ORDER BY stream_version"
        return self.rows(query, stream)

    def unaudited(self) -> list[dict[str, Any]]:
        """Events that the audit log has not, or has otherwise; and rows of it that are no event."""
        return self.rows(
            "SELECT stream, stream_version, event.type, audit.type AS audited FROM domain_events event"
            " FULL JOIN audit_log audit USING (tenant, stream, stream_version)"
            " WHERE event.type IS DISTINCT FROM audit.type"
        )

    def chunks(self, document_id: str) -> list[str]:
        """Chunk ids of the live version."""
        query = (
            "SELECT chunk_id FROM version_chunks JOIN documents ON documents.id = document_id"
            " WHERE document_id = %s AND version = live_version ORDER BY chunk_id"
        )
        return [str(row["chunk_id"]) for row in self.rows(query, document_id)]

    def leftovers(self, document_id: str) -> dict[str, int]:
        """Rows by table that still belong to a document."""
        tables = ("chunks", "version_chunks", "document_versions")
        counted = {
            table: self.rows(f"SELECT count(*) AS n FROM {table} WHERE document_id = %s", document_id)[0]["n"]
            for table in tables
        }
        return {table: count for table, count in counted.items() if count}
