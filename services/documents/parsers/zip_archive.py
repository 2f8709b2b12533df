"""ZIP: a container; each file in it becomes a member, unpacked to the scratch folder and parsed later by itself."""

from __future__ import annotations

import zipfile

from schemas.errors import PermanentFailure
from schemas.parsed_documents import Member, ParsedDocument, Warning
from services.documents.bounded_zip import BoundedZip
from services.documents.bounds import bound_reached
from services.documents.member_names import safe_path, unique_path, zip_entry_name
from services.documents.parse_source import ParseSource

_CLUTTER = {"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini"}


def parse(source: ParseSource) -> ParsedDocument:
    limits = source.limits
    if source.depth >= limits.archive_depth:
        raise bound_reached("too_deep", "archives are nested too deeply", "archive_depth", limits.archive_depth)
    document = ParsedDocument(media_type=source.media_type, parser="zip")
    with BoundedZip(source.path, limits, entries=limits.archive_members) as archive:
        files = [info for info in archive.infos if not info.is_dir() and not _is_clutter(info)]
        if not files:
            raise PermanentFailure("empty", "the archive holds no files")
        taken: set[str] = set()
        for number, info in enumerate(files):
            member = _unpack(source, archive, info, number, taken, document.warnings)
            if member is not None:
                document.members.append(member)
    if not document.members:
        code = "encrypted" if any(warning.code == "member_encrypted" for warning in document.warnings) else "corrupt"
        raise PermanentFailure(code, f"none of the archive's {len(files)} files can be read")
    return document


def _is_clutter(info: zipfile.ZipInfo) -> bool:
    return any(part in _CLUTTER for part in info.filename.replace("\\", "/").split("/"))


def _unpack(
    source: ParseSource,
    archive: BoundedZip,
    info: zipfile.ZipInfo,
    number: int,
    taken: set[str],
    warnings: list[Warning],
) -> Member | None:
    """Write one entry under a name of our own; one that cannot be read is a warning, a bound ends the whole parse."""
    path = unique_path(safe_path(zip_entry_name(info)), taken)
    file = source.scratch / f"member-{number:05d}"
    size = 0
    try:
        with file.open("wb") as target:
            for piece in archive.pieces(info):
                size += target.write(piece)
    except PermanentFailure as failure:
        if failure.code not in {"encrypted", "corrupt"}:
            raise
        file.unlink(missing_ok=True)
        warnings.append(Warning(code=f"member_{failure.code}", detail=f"{path}: {failure.detail}"))
        return None
    return Member(path=path, file=str(file), bytes=size)
