"""HTML by selectolax (lexbor): the main content once, boilerplate dropped, tables kept. Nothing is fetched."""

from __future__ import annotations

from urllib.parse import urljoin

import regex
from selectolax.lexbor import LexborHTMLParser, LexborNode

from schemas.errors import PermanentFailure
from schemas.parsed_documents import Block, ParsedDocument
from services.documents.clean_text import clean_text, one_line
from services.documents.parse_source import ParseSource
from services.documents.parsers.html_walk import BlockWalk
from services.documents.text_encoding import decode_text

_NEVER_READ = (
    "script, style, template, noscript, svg, math annotation, iframe, object, [hidden], [aria-hidden=true], dialog"
)
_BOILERPLATE = (
    "nav, footer, aside, [role=navigation], [role=contentinfo], [role=banner], [role=search], [role=complementary],"
    " body > header, form[role=search], .sidebar, .breadcrumb, .breadcrumbs, .cookie-banner"
)
_MAIN = "main, article, [role=main], #content, #main-content"
_ENOUGH_CHARACTERS = 200
_ENOUGH_SHARE = 0.2
_CHARSET = regex.compile(rb"<meta[^>]{0,300}charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{1,40})", regex.I)
_TAG = regex.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]{0,40})")
_NOT_NESTING = {
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr",
    "p", "li", "dt", "dd", "tr", "td", "th", "tbody", "thead", "tfoot", "option", "optgroup", "colgroup", "rp", "rt",
}  # fmt: skip
"""Void elements, and those whose end tag may be left out."""
_DEEPEST = 5_000
_HIDDEN_STYLE = regex.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", regex.I)


def parse(source: ParseSource) -> ParsedDocument:
    declared = _CHARSET.search(source.data[:4096])
    text, encoding = decode_text(source.data, declared.group(1).decode("ascii") if declared else None)
    page_url = source.name if source.name.startswith(("http://", "https://")) else None
    blocks, title, language = html_blocks(clean_text(text), page_url)
    return ParsedDocument(
        media_type=source.media_type,
        parser=f"lexbor ({encoding})",
        title=title,
        language=language,
        blocks=blocks,
    )


def html_blocks(text: str, page_url: str | None = None) -> tuple[list[Block], str | None, str | None]:
    """Blocks, title and declared language of a page or fragment.

    Links are written out, resolved, when the page says or the caller knows where it came from; else their text stands.
    """
    _refuse_deep(text)
    tree = LexborHTMLParser(text)
    heading = tree.css_first("h1")
    title_node = tree.css_first("title") or heading
    title = one_line(title_node.text(separator=" ")) if title_node else None
    root = tree.css_first("html")
    language = root.attributes.get("lang") if root else None
    base = tree.css_first("base[href]")
    base_url = urljoin(page_url or "", (base.attributes.get("href") or "") if base else "") or None
    for node in tree.css(_NEVER_READ):
        node.remove()
    for node in tree.css("[style]"):
        if _HIDDEN_STYLE.search(node.attributes.get("style") or ""):
            node.remove()
    body = tree.body
    if body is None:
        return [], title, language
    return _main_content(body, base_url), title or None, language or None


def _refuse_deep(text: str) -> None:
    """Building a tree takes time quadratic in its depth (each start tag looks up the stack of open elements)."""
    depth = 0
    for match in _TAG.finditer(text):
        if match.group(2).lower() not in _NOT_NESTING:
            depth = max(depth - 1, 0) if match.group(1) else depth + 1
            if depth > _DEEPEST:
                raise PermanentFailure("too_deep", f"the HTML is nested more than {_DEEPEST} levels")


def _main_content(body: LexborNode, base_url: str | None) -> list[Block]:
    """The blocks of the content alone, or of the whole body when that leaves too little of it."""
    everything = BlockWalk(base_url).walk(body)
    total = _characters(everything)
    mains = [node for node in body.css(_MAIN) if not _inside_main(node, body)]
    boilerplate = body.css(_BOILERPLATE)
    if not mains and not boilerplate:
        return everything
    kept = {node.mem_id for node in mains}
    skipped = {node.mem_id for node in boilerplate} - kept
    for roots in (mains, [body]):
        content = [block for root in roots for block in BlockWalk(base_url, skipped).walk(root)]
        found = _characters(content)
        if found >= _ENOUGH_CHARACTERS or found > _ENOUGH_SHARE * total:
            return content
    return everything


def _inside_main(node: LexborNode, body: LexborNode) -> bool:
    parent = node.parent
    while parent is not None and parent.mem_id != body.mem_id:
        if parent.css_matches(_MAIN):
            return True
        parent = parent.parent
    return False


def _characters(blocks: list[Block]) -> int:
    return sum(len(block.text) + sum(len(cell) for row in block.rows for cell in row) for block in blocks)
