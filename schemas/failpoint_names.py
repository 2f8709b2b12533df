"""Where a durability test may kill a process. The names are data, so that tests and code cannot drift apart."""

from __future__ import annotations

FAILPOINTS: frozenset[str] = frozenset(
    {
        "start.before_outbox_mark",
        "ingest.claimed",
        *(
            f"{stage}.{side}"
            for stage in (
                "parse", "chunk", "embed", "index", "publish", "sweep", "finish_ingest",
                "close_ingests", "empty_indexes", "empty_blobs", "empty_rows", "finish_removal",
                "retrieve", "generate", "finish_answer",
                "next_turn", "think", "call", "finish_turn", "look_at_approval",
            )
            for side in ("before", "after")
        ),
        "embed.between_batches",
        "generate.mid_stream",
        "think.mid_stream",
        "call.begun",
        "call.made",
    }
)  # fmt: skip
