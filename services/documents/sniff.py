"""What a file is, told from its first bytes; the name's ending and the declared type are only hints."""

from __future__ import annotations

import zipfile
from pathlib import Path, PurePosixPath
from typing import Final

import msoffcrypto
import olefile

from schemas.errors import PermanentFailure

PLAIN: Final = "text/plain"
MARKDOWN: Final = "text/markdown"
HTML: Final = "text/html"
CSV: Final = "text/csv"
TSV: Final = "text/tab-separated-values"
JSON: Final = "application/json"
JSON_LINES: Final = "application/x-ndjson"
PDF: Final = "application/pdf"
DOCX: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX: Final = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XLS: Final = "application/vnd.ms-excel"
ODS: Final = "application/vnd.oasis.opendocument.spreadsheet"
EPUB: Final = "application/epub+zip"
MAIL: Final = "message/rfc822"
MHTML: Final = "multipart/related"
ZIP: Final = "application/zip"
IMAGE: Final = "image/*"

_OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\x00", b"MM\x00*", b"BM")
_BINARIES = (
    b"\x7fELF", b"MZ\x90", b"\x1f\x8b", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07", b"BZh", b"\xfd7zXZ\x00", b"OggS", b"ID3",
    b"fLaC", b"\x00\x00\x01\x00", b"\x1aE\xdf\xa3", b"SQLite format 3\x00", b"\xca\xfe\xba\xbe", b"wOFF", b"{\\rtf",
)  # fmt: skip
_BY_ENDING = {
    ".md": MARKDOWN, ".markdown": MARKDOWN, ".mdown": MARKDOWN, ".mdx": MARKDOWN, ".html": HTML, ".htm": HTML,
    ".xhtml": HTML, ".csv": CSV, ".tsv": TSV, ".tab": TSV, ".json": JSON, ".jsonl": JSON_LINES, ".ndjson": JSON_LINES,
    ".eml": MAIL, ".mht": MHTML, ".mhtml": MHTML,
}  # fmt: skip
_TEXT_TYPES = {MARKDOWN, HTML, CSV, TSV, JSON, JSON_LINES, MAIL, MHTML, PLAIN}
_MAIL_FIELDS = ("from:", "to:", "subject:", "date:", "received:", "return-path:", "message-id:", "mime-version:")
_HEAD_BYTES = 8_192


def sniff(path: Path, name: str, declared: str | None = None) -> str:
    """The media type of the file at `path`. Raises PermanentFailure(empty | encrypted | unsupported | corrupt)."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head:
        raise PermanentFailure("empty", f"{name!r} has no bytes")
    if head.startswith(_OLE_MAGIC):
        return _ole_type(path, name)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")):
        return _zip_type(path)
    if head.startswith(b"%PDF-") or (b"%PDF-" in head[:1024] and _mail_fields(head.decode("latin-1").lower()) < 2):
        return PDF
    if head.startswith(_IMAGES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP") or head[4:12] == b"ftypheic":
        return IMAGE
    if head.startswith(_BINARIES) or head[4:8] == b"ftyp" or head[:4] == b"RIFF" or _looks_binary(head):
        raise PermanentFailure("unsupported", f"{name!r} is a binary format that is not read")
    return _text_type(head, name, declared)


def _ole_type(path: Path, name: str) -> str:
    """Old office files, and the envelope of encrypted new ones ([MS-OFFCRYPTO] 2.3)."""
    try:
        with olefile.OleFileIO(str(path)) as ole:
            if ole.exists("EncryptedPackage") or ole.exists("EncryptionInfo"):
                raise PermanentFailure("encrypted", f"{name!r} is protected by a password")
            if ole.exists("Workbook") or ole.exists("Book"):
                _refuse_encrypted_workbook(path, name)
                return XLS
    except PermanentFailure:
        raise
    except Exception as error:
        # The envelope cannot be read. Under the name of a zip-based format it can only have been an encrypted package.
        if PurePosixPath(name.lower()).suffix in {".docx", ".xlsx", ".pptx", ".docm", ".xlsm", ".pptm"}:
            raise PermanentFailure("encrypted", f"{name!r} is protected by a password") from error
        raise PermanentFailure("corrupt", f"{name!r} is a damaged office file") from error
    raise PermanentFailure(
        "unsupported", f"{name!r} is an old office format that is not read; save it in a current one"
    )


def _refuse_encrypted_workbook(path: Path, name: str) -> None:
    with path.open("rb") as file:
        try:
            encrypted = msoffcrypto.OfficeFile(file).is_encrypted()
        except Exception:
            return  # not for us to judge: the workbook parser says what is wrong with it
    if encrypted:
        raise PermanentFailure("encrypted", f"{name!r} is protected by a password")


def _zip_type(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.NameToInfo)
            if "mimetype" in names and archive.NameToInfo["mimetype"].file_size < 200:
                declared = archive.read("mimetype").decode("ascii", "replace").strip()
                if declared in {EPUB, ODS}:
                    return declared
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError):
        return ZIP  # the archive parser reports what is wrong
    for part, media_type in (("word/document.xml", DOCX), ("ppt/presentation.xml", PPTX)):
        if part in names:
            return media_type
    if any(entry.startswith("xl/workbook.") for entry in names):
        return XLSX
    if "[Content_Types].xml" in names and any(entry.startswith("word/") for entry in names):
        return DOCX
    return ZIP


def _looks_binary(head: bytes) -> bool:
    """NULs without the pattern of UTF-16, or many control bytes."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    nuls = head.count(0)
    even, odd = head[::2].count(0), head[1::2].count(0)
    if nuls and max(even, odd) > 0.3 * len(head) / 2 and min(even, odd) < 0.1 * max(even, odd):
        return False
    controls = sum(head.count(byte) for byte in range(1, 32) if byte not in (9, 10, 12, 13, 27))
    if len(head) < 64:
        return (nuls + controls) * 2 > len(head)
    return nuls > 0.1 * len(head) or controls > 0.1 * len(head)


def _mail_fields(text: str) -> int:
    return sum(1 for line in text.split("\n")[:40] if line.startswith(_MAIL_FIELDS))


def _text_type(head: bytes, name: str, declared: str | None) -> str:
    text = head.decode("latin-1").lstrip("\ufeffï»¿ \t\r\n").lower()
    ending = _BY_ENDING.get(PurePosixPath(name.lower()).suffix)
    if text.startswith(("<!doctype html", "<html")):
        return HTML
    if _mail_fields(text) >= 2 and text.split(":", 1)[0].replace("-", "").isalnum() and ending in {None, MAIL, MHTML}:
        # a saved web page is a mail whose body is multipart/related and that nobody sent
        saved_page = "multipart/related" in text and ("snapshot-content-location" in text or ending == MHTML)
        return MHTML if saved_page else MAIL
    if ending:
        return ending
    bare = (declared or "").split(";")[0].strip().lower()
    if bare == "text/x-markdown":
        bare = MARKDOWN
    if bare in _TEXT_TYPES and bare != PLAIN:
        return bare
    return HTML if text.startswith(("<head", "<body", "<meta", "<div", "<p>", "<table")) else PLAIN
