"""EPUB: the chapters of its spine, in order, as the HTML they are."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote

from schemas.errors import PermanentFailure
from schemas.parsed_documents import ParsedDocument
from services.documents.bounded_zip import BoundedZip
from services.documents.clean_text import clean_text, one_line
from services.documents.parse_source import ParseSource
from services.documents.parsers.html import html_blocks
from services.documents.parsers.office_package import parse_xml
from services.documents.text_encoding import decode_text

_DC = "{http://purl.org/dc/elements/1.1/}"


def parse(source: ParseSource) -> ParsedDocument:
    document = ParsedDocument(media_type=source.media_type, parser="epub")
    with BoundedZip(source.path, source.limits) as archive:
        if "META-INF/encryption.xml" in archive and "META-INF/rights.xml" in archive:
            raise PermanentFailure("encrypted", "the book is protected against copying")
        root_file = parse_xml(archive.read("META-INF/container.xml")).find(".//{*}rootfile")
        package_path = unquote((root_file.get("full-path") or "") if root_file is not None else "")
        package = parse_xml(archive.read(package_path))
        items = {item.get("id"): item.get("href") or "" for item in package.iter("{*}item")}
        for entry in package.iter("{*}itemref"):
            href = unquote(items.get(entry.get("idref"), ""))
            part = posixpath.normpath(posixpath.join(posixpath.dirname(package_path), href))
            if href and part in archive:
                document.blocks.extend(html_blocks(clean_text(decode_text(archive.read(part))[0]))[0])
        document.title = one_line(package.findtext(f".//{_DC}title") or "") or None
        document.author = one_line(package.findtext(f".//{_DC}creator") or "") or None
        document.language = one_line(package.findtext(f".//{_DC}language") or "") or None
    return document
