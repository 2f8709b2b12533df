"""How many embeddings a changed line costs in a long document."""

from __future__ import annotations

from tests.bench import material
from tests.bench.measuring import Bench, Measured, say
from tests.bench.served import Served, serving

SECTIONS = 500


async def measure(bench: Bench) -> Measured:
    """The worst of several lines: near the beginning, in the middle, near the end."""
    sections = bench.times(SECTIONS, 60)
    text = material.document("changing", sections)
    made = []
    async with serving(bench, "changing") as served:
        first = await _version(served, text)
        for share in (0.05, 0.5, 0.95):
            text = _with_a_changed_line(text, share)
            version = await _version(served, text)
            made.append(version["embeddings_made"])
            say(f"{version['embeddings_made']} of {version['chunks']} chunks embedded after one line")
    raw = {"chunks": first["chunks"], "first_version": first["embeddings_made"], "after_each_line": made}
    return {"reembedded_after_one_line": max(made), "raw": raw}


async def _version(served: Served, text: str) -> dict[str, int]:
    (receipt,) = await served.ingest({"changing.md": text})
    query = "SELECT chunks, embeddings_made FROM document_versions WHERE document_id = %s AND number = %s"
    return (await served.rows(query, receipt["document_id"], receipt["version"]))[0]


def _with_a_changed_line(text: str, share: float) -> str:
    """Another sentence in a paragraph about so far into the text; headings stay."""
    lines = text.split("\n")
    number = int(len(lines) * share)
    while not lines[number] or lines[number].startswith("#"):
        number += 1
    lines[number] = f"This line was changed at {share}. " + lines[number].split(". ", 1)[1]
    return "\n".join(lines)
