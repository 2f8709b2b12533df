"""Bytes to text when nobody says, or lies about, how it was encoded."""

from __future__ import annotations

import codecs

import charset_normalizer

from schemas.errors import PermanentFailure
from services.documents.encoding_fitness import CANDIDATES, naturalness

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_JUDGED_BYTES = 200_000
_CONVINCING = 0.6
_UNICODE = {"utf-8", "ascii", "utf-16", "utf-16-le", "utf-16-be", "utf-32"}


def decode_text(data: bytes, declared: str | None = None) -> tuple[str, str]:
    """The text and the name of the encoding that gave it. Raises PermanentFailure("corrupt").

    Order: byte order mark, strict UTF-8 over all bytes, BOM-less UTF-16, then whichever of the declared and the usual
    regional encodings reads most like text, then charset-normalizer's guess.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace"), encoding
    if wide := _utf16_without_mark(data):
        return data.decode(wide, "replace"), wide
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        pass
    if _mostly_utf8(data):
        return data.decode("utf-8", "replace"), "utf-8"
    for encoding in _by_fitness(data[:_JUDGED_BYTES], declared):
        try:
            return data.decode(encoding), encoding
        except UnicodeDecodeError:
            continue
    best = charset_normalizer.from_bytes(data[:_JUDGED_BYTES]).best()
    if best is None:
        raise PermanentFailure("corrupt", f"byte {_first_bad_byte(data)} is not UTF-8 and no known encoding fits")
    return data.decode(best.encoding, "replace"), best.encoding


def _first_bad_byte(data: bytes) -> int:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return 0


def _utf16_without_mark(data: bytes) -> str | None:
    """UTF-16 of mostly ASCII text has a NUL in every second byte."""
    sample = data[:_JUDGED_BYTES]
    even, odd, half = sample[::2].count(0), sample[1::2].count(0), max(1, len(sample) // 2)
    if odd > 0.3 * half and even < 0.1 * odd:
        return "utf-16-le"
    if even > 0.3 * half and odd < 0.1 * even:
        return "utf-16-be"
    return None


def _mostly_utf8(data: bytes) -> bool:
    """A few damaged bytes in a text that is otherwise UTF-8 beyond doubt."""
    text = data[:_JUDGED_BYTES].decode("utf-8", "replace")
    bad = text.count("\ufffd")
    good = sum(1 for character in text if character > "\x7f") - bad
    return good > 20 * bad


def _by_fitness(sample: bytes, declared: str | None) -> list[str]:
    """Encodings that decode the sample and read like text, likeliest first."""
    names = list(CANDIDATES)
    if declared and _canonical_name(declared) not in {None, *_UNICODE}:
        names.insert(0, declared)
    scored: list[tuple[float, int, str]] = []
    for place, encoding in enumerate(names):
        text = _decode_prefix(sample, encoding)
        if text is not None:
            score = naturalness(text, encoding) + (0.5 if encoding == declared else 0.0)
            scored.append((score, -place, encoding))
    return [encoding for score, _, encoding in sorted(scored, reverse=True) if score >= _CONVINCING]


def _decode_prefix(sample: bytes, encoding: str) -> str | None:
    """The sample's text; a character cut in two by the sample's end is no error."""
    try:
        return sample.decode(encoding)
    except UnicodeDecodeError as error:
        if error.start < len(sample) - 4 or len(sample) < _JUDGED_BYTES:
            return None
        return sample[: error.start].decode(encoding)


def _canonical_name(encoding: str) -> str | None:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        return None
