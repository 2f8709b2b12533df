"""HTML by selectolax (lexbor): the main content once, boilerplate dropped, tables kept. Nothing is fetched."""

from __future__ import annotations

import regex
from selectolax.lexbor import LexborHTMLParser, LexborNode

from schemas.parsed_documents import Block, ParsedDocument
from services.documents.clean_text import clean_text, one_line
from services.documents.parse_source import ParseSource
from services.documents.parsers.html_tables import is_layout, table_block
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
_HIDDEN_STYLE = regex.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", regex.I)
_HEADINGS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
_BLOCK_TAGS = {
    "p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "ul", "ol", "li", "dl", "dt", "dd",
    "blockquote", "figure", "figcaption", "form", "fieldset", "address", "hr", "body", "html", "details", "summary",
    "table", "thead", "tbody", "tfoot", "tr", "td", "th", "caption", "center", *_HEADINGS,
}  # fmt: skip
_SPACES = regex.compile(r"[ \t\r\n\f]+")


def parse(source: ParseSource) -> ParsedDocument:
    declared = _CHARSET.search(source.data[:4096])
    text, encoding = decode_text(source.data, declared.group(1).decode("ascii") if declared else None)
    blocks, title, language = html_blocks(clean_text(text))
    return ParsedDocument(
        media_type=source.media_type,
        parser=f"lexbor ({encoding})",
        title=title,
        language=language,
        blocks=blocks,
    )


def html_blocks(text: str) -> tuple[list[Block], str | None, str | None]:
    """Blocks, title and declared language of a page or fragment."""
    tree = LexborHTMLParser(text)
    heading = tree.css_first("h1")
    title_node = tree.css_first("title") or heading
    title = one_line(title_node.text(separator=" ")) if title_node else None
    root = tree.css_first("html")
    language = root.attributes.get("lang") if root else None
    for node in tree.css(_NEVER_READ):
        node.remove()
    for node in tree.css("[style]"):
        if _HIDDEN_STYLE.search(node.attributes.get("style") or ""):
            node.remove()
    body = tree.body
    if body is None:
        return [], title, language
    return _main_content(body, title), title or None, language or None


def _main_content(body: LexborNode, title: str | None) -> list[Block]:
    """The blocks of the content alone, or of the whole body when that leaves too little of it."""
    everything = BlockWalk().walk(body)
    total = _characters(everything)
    mains = [node for node in body.css(_MAIN) if not _inside_main(node, body)]
    boilerplate = body.css(_BOILERPLATE)
    if not mains and not boilerplate:
        return everything
    skipped = {node.mem_id for node in boilerplate if not any(node.mem_id == main.mem_id for main in mains)}
    content = [block for main in mains or [body] for block in BlockWalk(skipped).walk(main)]
    found = _characters(content)
    if mains and found < _ENOUGH_CHARACTERS and found < _ENOUGH_SHARE * total:
        content = BlockWalk(skipped).walk(body)
        found = _characters(content)
    return content if found >= _ENOUGH_CHARACTERS or found >= _ENOUGH_SHARE * total else everything


def _inside_main(node: LexborNode, body: LexborNode) -> bool:
    parent = node.parent
    while parent is not None and parent.mem_id != body.mem_id:
        if parent.css_matches(_MAIN):
            return True
        parent = parent.parent
    return False


def _characters(blocks: list[Block]) -> int:
    return sum(len(block.text) + sum(len(cell) for row in block.rows for cell in row) for block in blocks)


class BlockWalk:
    """Walks a tree once, without recursion, and cuts its text into blocks where block elements begin and end."""

    def __init__(self, skipped: set[int] | None = None) -> None:
        self._skipped = skipped or set()
        self._blocks: list[Block] = []
        self._parts: list[str] = []
        self._open: list[str] = []
        self._lists: list[int | None] = []
        self._marker = ""

    def walk(self, root: LexborNode) -> list[Block]:
        node: LexborNode | None = root
        while node is not None:
            child = self._enter(node)
            if child is not None:
                node = child
                continue
            while node is not None:
                self._leave(node)
                if node.mem_id == root.mem_id:
                    node = None
                    break
                if node.next is not None:
                    node = node.next
                    break
                node = node.parent
        self._flush()
        return self._blocks

    def _enter(self, node: LexborNode) -> LexborNode | None:
        """Take the node in; the child to go on with, or None."""
        if node.is_text_node:
            self._parts.append(node.raw_value.decode("utf-8", "replace") if node.raw_value else node.text_content or "")
            return None
        tag = node.tag or ""
        if node.mem_id in self._skipped or not node.is_element_node:
            return None
        if tag in _BLOCK_TAGS:
            self._flush()
        if tag == "table" and not is_layout(node):
            self._blocks.extend(table_block(node))
            return None
        if tag == "pre":
            self._flush()
            self._code(node)
            return None
        self._inline_start(node, tag)
        self._open.append(tag)
        return node.child

    def _inline_start(self, node: LexborNode, tag: str) -> None:
        if tag == "br":
            self._parts.append("\v")
        elif tag == "img" and (alt := node.attributes.get("alt")):
            self._parts.append(f" {alt} ")
        elif tag in {"ul", "ol"}:
            start = node.attributes.get("start") or "1"
            self._lists.append(
                int(start) - 1 if tag == "ol" and start.lstrip("-").isdecimal() else 0 if tag == "ol" else None
            )
        elif tag == "li":
            count = self._lists[-1] if self._lists else None
            if count is not None:
                self._lists[-1] = count + 1
                self._marker = f"{count + 1}. "

    def _leave(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if node.mem_id in self._skipped or not node.is_element_node or tag == "pre":
            return
        if tag == "table" and (not self._open or self._open[-1] != "table"):
            return
        if not self._open or self._open[-1] != tag:
            return
        if tag in _BLOCK_TAGS:
            self._flush()
        self._open.pop()
        if tag in {"ul", "ol"} and self._lists:
            self._lists.pop()

    def _flush(self) -> None:
        """What has been gathered becomes one block, of the kind of the innermost element that has one."""
        text = _SPACES.sub(" ", "".join(self._parts))
        self._parts.clear()
        text = "\n".join(line.strip() for line in text.split("\v")).strip()
        if not text:
            return
        for tag in reversed(self._open):
            if tag in _HEADINGS:
                self._blocks.append(Block(kind="heading", text=text, level=_HEADINGS[tag]))
                return
            if tag in {"li", "dt", "dd"}:
                level = max(len(self._lists), 1)
                self._blocks.append(Block(kind="list_item", text=self._marker + text, level=level))
                self._marker = ""
                return
            if tag == "blockquote":
                self._blocks.append(Block(kind="quote", text=text))
                return
        self._blocks.append(Block(kind="paragraph", text=text))

    def _code(self, node: LexborNode) -> None:
        inner = node.css_first("code")
        names = (inner.attributes.get("class") or "") if inner else ""
        language = next((name[9:] for name in names.split() if name.startswith("language-")), None)
        text = node.text()
        if text.strip():
            self._blocks.append(Block(kind="code", text=text, language=language))
