"""Parses files in confined children: what a file may do, it does there."""

from __future__ import annotations

from pathlib import Path

from schemas.errors import PermanentFailure
from schemas.parsed_documents import ParsedFile
from services.documents.child_frames import ChildReply, ChildRequest
from services.documents.child_pool import ChildPool


class ParseRequest(ChildRequest):
    """What the pool asks of a child."""

    path: str
    media_type: str | None
    scratch: str
    depth: int


class ParseReply(ChildReply):
    """With a file, unless the reply holds a failure."""

    file: ParsedFile | None = None


class ParserPool(ChildPool):
    """Files to canonical text."""

    module = "services.documents.parser_child"

    async def parse(self, path: Path, name: str, media_type: str | None, scratch: Path, depth: int) -> ParsedFile:
        """Parse in a child; see `parse_file`. The text, the canonical document and the members are files in `scratch`.

        Raises what `ask` does.
        """
        request = ParseRequest(path=str(path), name=name, media_type=media_type, scratch=str(scratch), depth=depth)
        reply = await self.ask(request, ParseReply)
        if reply.file is None:
            raise PermanentFailure("corrupt", f"the parser says nothing of {name!r}")
        _check_files(reply.file, scratch)
        return reply.file


def _check_files(parsed: ParsedFile, scratch: Path) -> None:
    """A child is not to be believed blindly: what it names are plain files in the scratch folder, nothing else."""
    root = scratch.resolve()
    for name in (parsed.text_file, parsed.canonical_file, *(member.file for member in parsed.members)):
        file = Path(name)
        if file.is_symlink() or not file.is_file() or file.resolve().parent != root:
            raise PermanentFailure("corrupt", f"the parser names a file that it was not given: {name!r}")
