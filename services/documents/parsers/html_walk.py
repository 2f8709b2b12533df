"""A walk over an HTML tree that cuts its text into blocks."""

from __future__ import annotations

from urllib.parse import urljoin

import regex
from selectolax.lexbor import LexborNode

from schemas.parsed_documents import Block
from services.documents.parsers.html_tables import is_layout, table_block

_HEADINGS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
_BLOCK_TAGS = {
    "p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "ul", "ol", "li", "dl", "dt", "dd",
    "blockquote", "figure", "figcaption", "form", "fieldset", "address", "hr", "body", "html", "details", "summary",
    "table", "thead", "tbody", "tfoot", "tr", "td", "th", "caption", "center", *_HEADINGS,
}  # fmt: skip
_DEEPEST_TABLE = 8
"""Tables inside that many others arrange something; looking into each would take time quadratic in the depth."""
_SPACES = regex.compile(r"[ \t\r\n\f]+")


class BlockWalk:
    """Walks a tree once, without recursion, and cuts its text into blocks where block elements begin and end."""

    def __init__(self, base_url: str | None = None, skipped: set[int] | None = None) -> None:
        self._base_url = base_url
        self._skipped = skipped or set()
        self._links: list[tuple[str, int]] = []  # target, and where in the parts its text begins
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
            self._parts.append(node.text_content or "")
            return None
        tag = node.tag or ""
        if node.mem_id in self._skipped or not node.is_element_node:
            return None
        if tag in _BLOCK_TAGS:
            self._flush()
        if tag == "table" and self._open.count("table") < _DEEPEST_TABLE and not is_layout(node):
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
        elif tag == "a":
            self._links.append((self._resolved(node.attributes.get("href")), len(self._parts)))
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
        if tag == "a" and self._links:
            self._close_link(*self._links.pop())
        if tag in {"ul", "ol"} and self._lists:
            self._lists.pop()

    def _resolved(self, href: str | None) -> str:
        if not href or not self._base_url or href.startswith("#"):
            return ""
        try:
            target = urljoin(self._base_url, href.strip())
        except ValueError:
            return ""
        return target if target.startswith(("http://", "https://")) else ""

    def _close_link(self, target: str, begins: int) -> None:
        """Write the link out around its text, unless a block ended inside it."""
        text = "".join(self._parts[begins:]).strip()
        if target and text and text != target and begins < len(self._parts):
            self._parts[begins:] = [f"[{text}]({target})"]

    def _flush(self) -> None:
        """What has been gathered becomes one block, of the kind of the innermost element that has one."""
        text = _SPACES.sub(" ", "".join(self._parts))
        self._parts.clear()
        self._links = [("", 0)] * len(self._links)
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
