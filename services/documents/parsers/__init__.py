"""One parser per format: `parse(source: ParseSource) -> ParsedDocument`."""
