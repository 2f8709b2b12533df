"""Decisions only: one workflow per file, named by what it does."""
