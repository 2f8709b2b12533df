"""Mail (RFC 5322, MIME) and saved web pages (MHTML, RFC 2557) by the standard library."""

from __future__ import annotations

import email
import email.policy
import email.utils
from email.message import EmailMessage

from schemas.errors import PermanentFailure
from schemas.parsed_documents import Block, Member, ParsedDocument, Warning
from services.documents.bounds import bound_reached
from services.documents.clean_text import clean_text, one_line
from services.documents.member_names import safe_name, unique_path
from services.documents.parse_source import ParseSource
from services.documents.parsers import html, plain_text
from services.documents.sniff import MHTML
from services.documents.text_encoding import decode_text

_SIGNATURES = {"application/pkcs7-signature", "application/x-pkcs7-signature", "application/pgp-signature"}
_SHOWN_FIELDS = ("From", "To", "Cc", "Date", "Subject")


def parse(source: ParseSource) -> ParsedDocument:
    message = email.message_from_bytes(source.data, policy=email.policy.default)
    if not isinstance(message, EmailMessage) or (not message.keys() and not message.get_payload()):
        raise PermanentFailure("corrupt", "this is not a mail")
    document = ParsedDocument(media_type=source.media_type, parser="email")
    if source.media_type == MHTML:
        return _saved_page(message, document)
    document.title = _field(message, "Subject") or None
    document.author = _field(message, "From") or None
    document.created = _date(message)
    fields = [f"{name}: {value}" for name in _SHOWN_FIELDS if (value := _field(message, name))]
    if fields:
        document.blocks.append(Block(kind="paragraph", text="\n".join(fields)))
    body = _body(message)
    if body is not None:
        document.blocks.extend(_text_blocks(body))
    _attach(source, message, body, document)
    return document


def _saved_page(message: EmailMessage, document: ParsedDocument) -> ParsedDocument:
    page = next((part for part in message.walk() if part.get_content_type() == "text/html"), None)
    if not isinstance(page, EmailMessage):
        raise PermanentFailure("no_text", "the saved page holds no HTML")
    document.blocks, document.title, document.language = html.html_blocks(_text(page))
    document.title = document.title or _field(message, "Subject") or None
    return document


def _field(message: EmailMessage, name: str) -> str:
    try:
        return one_line(str(message.get(name, "")))
    except Exception:
        # a header the parser of structured fields chokes on is still worth its raw text
        return one_line(next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), ""))


def _date(message: EmailMessage) -> str | None:
    try:
        return email.utils.parsedate_to_datetime(_field(message, "Date")).isoformat()
    except (ValueError, TypeError, IndexError):
        return None


def _body(message: EmailMessage) -> EmailMessage | None:
    try:
        body = message.get_body(preferencelist=("plain", "html"))
    except Exception:
        return None  # a broken structure: its parts are still listed as attachments
    if not isinstance(body, EmailMessage):
        return None
    if body.get_content_type() == "text/plain" and not _text(body).strip():
        richer = message.get_body(preferencelist=("html",))
        return richer if isinstance(richer, EmailMessage) else body
    return body


def _text(part: EmailMessage) -> str:
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        return ""
    return clean_text(decode_text(payload, part.get_content_charset())[0]) if payload else ""


def _text_blocks(part: EmailMessage) -> list[Block]:
    text = _text(part)
    return html.html_blocks(text)[0] if part.get_content_type() == "text/html" else plain_text.paragraphs(text)


def _attach(source: ParseSource, message: EmailMessage, body: EmailMessage | None, document: ParsedDocument) -> None:
    """Every part that is a file, once; signatures are only mentioned."""
    taken: set[str] = set()
    total = 0
    for part in _leaves(message):
        if part is body or (part.get_content_disposition() != "attachment" and _is_other_body(part)):
            continue
        name = unique_path(safe_name(_part_name(part)), taken)
        if part.get_content_type() in _SIGNATURES:
            document.warnings.append(Warning(code="attachment_skipped", detail=f"{name} is a signature"))
            continue
        data = _part_bytes(part)
        total += len(data)
        limits = source.limits
        if len(document.members) >= limits.archive_members:
            raise bound_reached("too_many", "too many attachments", "archive_members", limits.archive_members)
        if total > limits.archive_bytes:
            raise bound_reached("too_large", "the attachments are too large", "archive_bytes", limits.archive_bytes)
        if not data:
            document.warnings.append(Warning(code="attachment_skipped", detail=f"{name} is empty"))
            continue
        file = source.scratch / f"member-{len(document.members):05d}"
        file.write_bytes(data)
        document.members.append(Member(path=name, file=str(file), bytes=len(data), media_type=part.get_content_type()))
    if document.members and source.depth >= source.limits.archive_depth:
        kept = len(document.members)
        document.members.clear()
        detail = f"{kept} attachments are nested too deeply (PERDURE_PARSING__ARCHIVE_DEPTH)"
        document.warnings.append(Warning(code="too_deep", detail=detail))


def _leaves(message: EmailMessage) -> list[EmailMessage]:
    """Parts that are no multipart; an attached mail is one part, its own parts are its own business."""
    found: list[EmailMessage] = []
    stack = [message]
    while stack:
        part = stack.pop()
        if part.get_content_maintype() == "multipart" and part.is_multipart():
            stack.extend(child for child in reversed(part.get_payload()) if isinstance(child, EmailMessage))  # type: ignore[arg-type]
        elif part is not message or part.get_content_maintype() != "text":
            found.append(part)
    return found


def _is_other_body(part: EmailMessage) -> bool:
    """The other rendering of the body, or a picture inside it."""
    if part.get_content_type() in {"text/plain", "text/html"}:
        return part.get_filename() is None
    return part.get_content_maintype() == "image" and part.get("Content-ID") is not None


def _part_name(part: EmailMessage) -> str:
    if part.get_content_type() == "message/rfc822":
        inner = part.get_payload()
        subject = _field(inner[0], "Subject") if isinstance(inner, list) and isinstance(inner[0], EmailMessage) else ""
        return part.get_filename() or f"{(subject or 'message').replace('/', '_')}.eml"
    return part.get_filename() or f"attachment.{part.get_content_subtype()}"


def _part_bytes(part: EmailMessage) -> bytes:
    payload = part.get_payload()
    if part.get_content_type() == "message/rfc822" and isinstance(payload, list) and payload:
        return payload[0].as_bytes() if isinstance(payload[0], EmailMessage) else b""
    decoded = part.get_payload(decode=True)
    return decoded if isinstance(decoded, bytes) else b""
