"""Which parser reads which media type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from schemas.parsed_documents import ParsedDocument
from services.documents import sniff
from services.documents.parse_source import ParseSource
from services.documents.parsers import (
    csv_table,
    docx,
    epub,
    html,
    image,
    json_document,
    mail,
    markdown,
    pdf,
    plain_text,
    pptx,
    workbook,
    zip_archive,
)

Parser = Callable[[ParseSource], ParsedDocument]

PARSERS: Mapping[str, Parser] = MappingProxyType(
    {
        sniff.PLAIN: plain_text.parse,
        sniff.MARKDOWN: markdown.parse,
        sniff.HTML: html.parse,
        sniff.CSV: csv_table.parse,
        sniff.TSV: csv_table.parse,
        sniff.JSON: json_document.parse,
        sniff.JSON_LINES: json_document.parse,
        sniff.PDF: pdf.parse,
        sniff.DOCX: docx.parse,
        sniff.PPTX: pptx.parse,
        sniff.XLSX: workbook.parse,
        sniff.XLS: workbook.parse,
        sniff.ODS: workbook.parse,
        sniff.EPUB: epub.parse,
        sniff.MAIL: mail.parse,
        sniff.MHTML: mail.parse,
        sniff.ZIP: zip_archive.parse,
        sniff.IMAGE: image.parse,
    }
)
