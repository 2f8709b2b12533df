"""A parser's process: `python -m services.documents.parser_child`, one file after another."""

from __future__ import annotations

from pathlib import Path

from schemas.errors import PermanentFailure
from schemas.parsed_documents import ParsedFile
from schemas.settings import ParsingSettings
from services.documents.canonical_text import canonicalise
from services.documents.child_loop import serve
from services.documents.parse_file import parse_file
from services.documents.parser_pool import ParseReply, ParseRequest


def main() -> None:
    serve(ParseRequest.model_validate_json, _answer)


def _answer(request: ParseRequest, limits: ParsingSettings) -> ParseReply:
    scratch = Path(request.scratch)
    parsed = parse_file(Path(request.path), request.name, request.media_type, scratch, limits, request.depth)
    canonical = canonicalise(parsed)
    if not canonical.text.strip() and not parsed.members:
        raise PermanentFailure("no_text", "The file holds no text that can be read")
    text_file, canonical_file = scratch / "text", scratch / "canonical.json"
    text_file.write_text(canonical.text, encoding="utf-8", newline="")
    canonical_file.write_text(canonical.model_dump_json(), encoding="utf-8", newline="")
    told = parsed.model_dump(include={"media_type", "parser", "members", "warnings", "coverage"})
    file = ParsedFile(
        **told,
        title=canonical.title,
        blocks=len(parsed.blocks),
        characters=len(canonical.text),
        text_file=str(text_file),
        canonical_file=str(canonical_file),
    )
    return ParseReply(file=file)


if __name__ == "__main__":
    main()
