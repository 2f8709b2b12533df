"""What each figure should reach."""

from __future__ import annotations

from collections.abc import Mapping

AT_LEAST = {"ingest_vs_loop": 0.85}
AT_MOST = {
    "search_p50_vs_raw_10k": 1.3,
    "search_p50_vs_raw_100k": 1.3,
    "search_p95_ingesting_vs_idle": 2.0,
    "added_first_token_ms_p50": 50.0,
    "reembedded_after_one_line": 3,
    "recovery_s_p95": 5.0,
    "event_to_handler_ms_p95": 100.0,
    "ready_s": 15.0,
    "stop_s": 20.0,
    "cancel_ms_p95": 1_000.0,
    "agent_read_step_ms": 20.0,
    "approve_to_continue_ms_p95": 150.0,
    "stop_ms_p95": 1_000.0,
}


def missed(figures: Mapping[str, float]) -> list[str]:
    """Keys whose goal was not reached; keys without a goal or without a figure are left out."""
    too_low = [key for key, least in AT_LEAST.items() if key in figures and figures[key] < least]
    too_high = [key for key, most in AT_MOST.items() if key in figures and figures[key] > most]
    return [*too_low, *too_high]
