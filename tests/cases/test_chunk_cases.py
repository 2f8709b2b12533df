"""Faults of chunking that people reported (B20, B82-B85)."""

from __future__ import annotations

from tests.unit.documents.parsing import chunks_of, parse_bytes, parse_case, text_of


def test_b20_chinese_sentences_are_never_begun_in_the_middle() -> None:
    text = "".join(f"这是第{number}句。" for number in range(2_000))
    chunks = chunks_of(parse_bytes(text.encode(), "a.txt"))
    assert "".join(chunk.text for chunk in chunks) == text
    for chunk in chunks:
        assert chunk.text.startswith("这是第")
        assert chunk.text.endswith("句。")
        assert chunk.tokens <= 256


def test_b83_comments_in_fences_are_no_headings_and_no_fence_is_left_open() -> None:
    document = parse_case("fence_hash.md")
    assert [block.text for block in document.blocks if block.kind == "heading"] == ["Real", "Title2"]
    chunks = chunks_of(document)
    assert all(chunk.text.count("```") % 2 == 0 and chunk.text.strip() for chunk in chunks)
    assert sum(chunk.text.count("y = 2") for chunk in chunks) == text_of(document).count("y = 2")
    assert chunks[-1].heading_path == ["Title2"]


def test_b85_one_unbroken_line_is_cut_within_the_bound_and_what_follows_is_found() -> None:
    for name in ("longline_b64.md", "longline_list.md"):
        document = parse_case(name)
        chunks = chunks_of(document)
        assert max(chunk.tokens for chunk in chunks) <= 256
        stored = text_of(document)
        assert "".join("".join(chunk.text.split()) for chunk in chunks) == "".join(stored.split())
    assert "tail words" in chunks_of(parse_case("longline_b64.md"))[-1].text
