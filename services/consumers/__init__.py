"""Faust agents over Perdure's own topics: each keeps one thing up to date from the events."""
