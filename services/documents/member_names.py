"""Names of files inside containers, made safe to show and to join, whatever wrote them."""

from __future__ import annotations

import zipfile

from services.documents.clean_text import one_line
from services.documents.text_encoding import decode_text

_LONGEST_NAME = 200
_BIDI_CONTROLS = dict.fromkeys([0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069])
_UTF8_FLAG = 0x800


def safe_path(name: str) -> str:
    """A relative path of plain names: no drive, no `..`, no empty part, no control character, `/` between parts."""
    cleaned = one_line(name.replace("\\", "/")).translate(_BIDI_CONTROLS)
    parts = [part.strip() for part in cleaned.split("/")]
    kept = [_shortened(part) for part in parts if part not in {"", ".", ".."} and not _is_drive(part)]
    return "/".join(kept) or "unnamed"


def safe_name(name: str) -> str:
    """The last part of the path alone: what a mail's attachment may call itself."""
    return safe_path(name).rsplit("/", 1)[-1]


def unique_path(path: str, taken: set[str]) -> str:
    """`path`, or `path (2)` and so on when it is taken; the result is then taken too."""
    stem, dot, ending = path.rpartition(".")
    if not dot or "/" in ending or not stem:
        stem, dot, ending = path, "", ""
    number, candidate = 1, path
    while candidate in taken:
        number += 1
        candidate = f"{stem} ({number}){dot}{ending}"
    taken.add(candidate)
    return candidate


def zip_entry_name(info: zipfile.ZipInfo) -> str:
    """The entry's name; one not marked as UTF-8 is in whatever encoding the packing machine used."""
    if info.flag_bits & _UTF8_FLAG or info.filename.isascii():
        return info.filename
    try:
        return decode_text(info.filename.encode("cp437"))[0]
    except UnicodeEncodeError:
        return info.filename


def _is_drive(part: str) -> bool:
    return len(part) == 2 and part[1] == ":" and part[0].isalpha()


def _shortened(part: str) -> str:
    if len(part) <= _LONGEST_NAME:
        return part
    stem, dot, ending = part.rpartition(".")
    if dot and len(ending) <= 10:
        return stem[: _LONGEST_NAME - len(ending) - 1] + dot + ending
    return part[:_LONGEST_NAME]
