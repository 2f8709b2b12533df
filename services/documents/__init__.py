"""From bytes to chunks: sniffing, parsing, canonical text, chunking. Pure code: no SQL, no HTTP, no network."""
