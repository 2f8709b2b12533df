"""Markdown (CommonMark and tables) by markdown-it-py. Nothing an image or a link names is fetched."""

from __future__ import annotations

import regex
from markdown_it import MarkdownIt
from markdown_it.token import Token

from schemas.parsed_documents import Block, BlockKind, ParsedDocument
from services.documents.bounds import XML_DEPTH
from services.documents.clean_text import clean_text
from services.documents.parse_source import ParseSource
from services.documents.parsers import html, plain_text
from services.documents.text_encoding import decode_text

_FRONT_MATTER = regex.compile(r"---\n(.{0,20000}?)\n(?:---|\.\.\.)(?:\n|$)", regex.S)
_FRONT_TITLE = regex.compile(r"(?m)^title:\s*[\"']?(.+?)[\"']?\s*$")
_IMAGE = regex.compile(r"!\[([^\[\]]{0,500})\](?:\([^()\s]{0,4000}(?:\s+\"[^\"]{0,500}\")?\)|\[[^\]]{0,200}\])")
_MARKUP = regex.compile(r"[\\`*_!\[\]<>&$~\n]")
_INLINE_LIMIT = 20_000
"""Above this many characters an inline text is taken as it is: emphasis in it is not worth quadratic work."""


def parse(source: ParseSource) -> ParsedDocument:
    text, encoding = decode_text(source.data)
    blocks, title = markdown_blocks(clean_text(text))
    return ParsedDocument(media_type=source.media_type, parser=f"markdown-it ({encoding})", title=title, blocks=blocks)


def markdown_blocks(text: str) -> tuple[list[Block], str | None]:
    """Blocks and title: the front matter's, else the first heading of level 1."""
    title = None
    front = _FRONT_MATTER.match(text)
    if front:
        found = _FRONT_TITLE.search(front.group(1))
        title = found.group(1) if found else None
        text = text[front.end() :]
    reader = _Reader()
    # inline parsing is ours to bound, so only the block rules run over the whole text
    markdown = MarkdownIt("commonmark", {"maxNesting": XML_DEPTH}).enable("table")
    inline = MarkdownIt("commonmark", {"maxNesting": XML_DEPTH})
    markdown.core.ruler.disable(["inline"])
    environment: dict[str, object] = {}
    for token in markdown.parse(text, environment):
        reader.read(token, inline, environment)
    if not reader.blocks:
        return plain_text.paragraphs(text), title  # nested deeper than the rules go
    if title is None:
        title = next((block.text for block in reader.blocks if block.kind == "heading" and block.level == 1), None)
    return reader.blocks, title


class _Reader:
    """Folds the flat token list into blocks."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.lists: list[str] = []
        self.numbers: list[int] = []
        self.item_marker = ""
        self.quotes = 0
        self.heading = 0
        self.rows: list[list[str]] | None = None

    def read(self, token: Token, inline: MarkdownIt, environment: dict[str, object]) -> None:
        match token.type:
            case "heading_open":
                self.heading = int(token.tag[1])
            case "heading_close":
                self.heading = 0
            case "fence" | "code_block":
                language = token.info.split()[0] if token.info.strip() else None
                self.blocks.append(Block(kind="code", text=token.content, language=language))
            case "html_block":
                self.blocks.extend(html.html_blocks(token.content)[0])
            case "blockquote_open":
                self.quotes += 1
            case "blockquote_close":
                self.quotes -= 1
            case "inline":
                self._inline(inline_text(token.content, inline, environment))
            case _:
                self._list_or_table(token)

    def _list_or_table(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                self.lists.append(token.type)
                self.numbers.append(int(token.attrGet("start") or 1) - 1)
            case "bullet_list_close" | "ordered_list_close":
                self.lists.pop()
                self.numbers.pop()
            case "list_item_open":
                self.numbers[-1] += 1
                self.item_marker = (
                    f"{self.numbers[-1]}{token.markup} " if self.lists[-1].startswith("ordered") else "- "
                )
            case "table_open":
                self.rows = []
            case "tr_open":
                assert self.rows is not None
                self.rows.append([])
            case "table_close":
                self.blocks.append(Block(kind="table", rows=self.rows or [], header_rows=1))
                self.rows = None

    def _inline(self, text: str) -> None:
        if self.rows is not None:
            self.rows[-1].append(text)
            return
        kind: BlockKind = "paragraph"
        if self.heading:
            kind = "heading"
        elif self.lists:
            kind = "list_item" if self.item_marker else "paragraph"
            text = self.item_marker.removeprefix("- ") + text
            self.item_marker = ""
        elif self.quotes:
            kind = "quote"
        level = self.heading or len(self.lists)
        if text.strip():
            self.blocks.append(Block(kind=kind, text=text, level=level))


def inline_text(content: str, inline: MarkdownIt, environment: dict[str, object]) -> str:
    """The readable text: links and code spans stay as written, images are their alternative text, emphasis marks go."""
    if not _MARKUP.search(content):
        return content
    if len(content) > _INLINE_LIMIT:
        return str(_IMAGE.sub(r"\1", content))
    if "$" in content or "\\(" in content:
        return str(_IMAGE.sub(r"\1", content))  # formulas use the characters of emphasis
    parts: list[str] = []
    links: list[str] = []
    for token in inline.parseInline(content, environment)[0].children or []:
        match token.type:
            case "softbreak" | "hardbreak":
                parts.append("\n")
            case "code_inline":
                parts.append(f"`{token.content}`")
            case "image":
                parts.append(token.content)
            case "link_open":
                links.append(str(token.attrGet("href") or ""))
                parts.append("" if token.markup == "autolink" else "[")
            case "link_close":
                target = links.pop()
                parts.append("" if token.markup == "autolink" else f"]({target})")
            case "html_inline":
                continue
            case _:
                parts.append(token.content)
    # an image whose target the renderer refuses comes back as written
    return str(_IMAGE.sub(r"\1", "".join(parts)))
