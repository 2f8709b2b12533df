"""Office Open XML packages (ECMA-376): parts, relationships and their XML, read within the archive bounds."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from functools import cached_property

from lxml import etree

from schemas.errors import PermanentFailure
from services.documents.bounded_zip import BoundedZip
from services.documents.clean_text import one_line

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_STRICT = (
    (b"http://purl.oclc.org/ooxml/wordprocessingml/main", W[1:-1].encode()),
    (b"http://purl.oclc.org/ooxml/drawingml/main", A[1:-1].encode()),
    (b"http://purl.oclc.org/ooxml/presentationml/main", P[1:-1].encode()),
    (b"http://purl.oclc.org/ooxml/officeDocument/relationships", R[1:-1].encode()),
)
_CORE = {"title": "{http://purl.org/dc/elements/1.1/}title", "author": "{http://purl.org/dc/elements/1.1/}creator",
         "created": "{http://purl.org/dc/terms/}created", "language": "{http://purl.org/dc/elements/1.1/}language"}  # fmt: skip


def parse_xml(data: bytes) -> etree._Element:
    """The root element. No entity is expanded, nothing is fetched; damage that can be read over is."""
    for strict, transitional in _STRICT:
        data = data.replace(strict, transitional)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True, huge_tree=False)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise PermanentFailure("corrupt", f"a part of the document is no XML: {error.msg}") from error
    if root is None:
        raise PermanentFailure("corrupt", "a part of the document is empty")
    return root


def local_name(element: etree._Element) -> str:
    """The tag without its namespace; empty for comments and processing instructions."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


class OfficePackage:
    """A package whose parts are found by relationship."""

    def __init__(self, archive: BoundedZip) -> None:
        self.archive = archive

    def xml(self, part: str) -> etree._Element:
        return parse_xml(self.archive.read(part))

    def related(self, part: str) -> dict[str, tuple[str, str]]:
        """Relationship id -> (last word of the type, part name), of those inside the package."""
        folder, _, name = part.rpartition("/")
        rels = f"{folder}/_rels/{name}.rels" if folder else f"_rels/{name}.rels"
        if rels not in self.archive:
            return {}
        found: dict[str, tuple[str, str]] = {}
        for relation in self.xml(rels):
            target = relation.get("Target")
            if target is None or relation.get("TargetMode") == "External":
                continue
            path = target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
            found[relation.get("Id") or ""] = ((relation.get("Type") or "").rpartition("/")[2], path)
        return found

    def related_by_type(self, part: str, kind: str) -> Iterator[str]:
        """Names of the related parts of one type that are there."""
        return (name for found, name in self.related(part).values() if found == kind and name in self.archive)

    @cached_property
    def core_properties(self) -> dict[str, str]:
        """title, author, created, language, as far as given."""
        if "docProps/core.xml" not in self.archive:
            return {}
        root = self.xml("docProps/core.xml")
        values = {name: one_line(root.findtext(tag) or "") for name, tag in _CORE.items()}
        return {name: value for name, value in values.items() if value}
