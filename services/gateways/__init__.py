"""One outside API per file."""
