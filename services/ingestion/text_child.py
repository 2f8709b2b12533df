"""The process that cuts and analyses: `python -m services.ingestion.text_child`, one request after another."""

from __future__ import annotations

from pathlib import Path

from schemas.parsed_documents import CanonicalDocument
from schemas.settings import ParsingSettings
from services.documents.child_frames import ChildReply
from services.documents.child_loop import serve
from services.documents.chunk_identity import identify
from services.documents.chunking import chunk_document
from services.gateways.local_tokens import LocalTokens
from services.ingestion.text_pool import TEXT_REQUEST, CutReply, CutRequest, WordsReply, WordsRequest
from services.retrieval.index_tokens import chunk_tokens

_tokens = LocalTokens()


def main() -> None:
    _tokens.load()  # before memory is bounded: the vocabulary is ours, not the document's
    serve(TEXT_REQUEST.validate_json, _answer)


def _answer(request: CutRequest | WordsRequest, limits: ParsingSettings) -> ChildReply:
    if isinstance(request, WordsRequest):
        return WordsReply(tokens=[chunk_tokens(*chunk) for chunk in request.chunks])
    canonical = CanonicalDocument.model_validate_json(Path(request.path).read_bytes())
    drafts = chunk_document(canonical, request.name, _tokens, request.sizes, members=request.members)
    return CutReply(chunks=identify(request.document_id, drafts))


if __name__ == "__main__":
    main()
