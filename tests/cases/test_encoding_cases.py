"""Faults of encodings that people reported (B01-B13)."""

from __future__ import annotations

import pytest

from tests.unit.documents.parsing import chunks_of, parse_bytes, parse_case, text_of


@pytest.mark.parametrize(
    ("file", "under", "expected"),
    [
        ("enc_gbk.txt", "segments.csv", "报销流程"),
        ("enc_gb18030_rare.txt", None, "𠮷野"),
        ("enc_big5.txt", None, "採購合約編號與報銷流程"),
        ("enc_sjis.csv", None, "ネジ"),
        ("html_charset_lies.html", None, "价格表"),
    ],
)
def test_b01_regional_encodings_are_told_without_a_declaration(file: str, under: str | None, expected: str) -> None:
    assert expected in text_of(parse_case(file, under))


def test_b02_a_text_that_begins_in_ascii_is_not_decoded_as_ascii() -> None:
    assert text_of(parse_case("enc_ascii_then_utf8.txt")).endswith(" café — end")


@pytest.mark.parametrize("position", [4_094, 4_095, 4_096])
def test_b02_an_accent_on_the_edge_of_a_read_buffer_survives(position: int) -> None:
    assert text_of(parse_bytes(b"x" * position + "é tail".encode(), "a.txt")).endswith("xé tail")


def test_b04_utf16_with_and_without_mark_is_read() -> None:
    table = parse_case("enc_utf16le_bom.csv").blocks[0]
    assert table.rows == [["name", "city"], ["Zoë", "Köln"], ["emoji", "🙂"]]
    assert text_of(parse_case("enc_utf16be_nobom.txt")) == "plain words without any mark"


def test_b04_a_byte_order_mark_is_no_part_of_the_first_header() -> None:
    assert parse_case("enc_utf8_bom.csv").blocks[0].rows[0][0] == "id"


def test_b05_windows_1252_is_transcoded() -> None:
    assert parse_case("enc_cp1252.csv").blocks[0].rows[1] == ["Café “Noir”", "12 €"]


def test_b07_a_pdf_glyph_mapped_to_nul_costs_only_itself() -> None:
    text = text_of(parse_case("p_nul_glyph.pdf"))
    assert text.split() == ["take", "o", "now"]


def test_b07_controls_leave_no_trace() -> None:
    text = text_of(parse_case("enc_controls.txt"))
    assert not any(ord(character) < 32 and character != "\n" for character in text)
    assert text.startswith("ab\ncde")


def test_b08_offsets_index_the_stored_text_after_nuls_are_gone() -> None:
    document = parse_case("enc_nul_in_text.txt")
    stored = text_of(document)
    assert stored == "alphabeta\n\ngamma"
    for chunk in chunks_of(document):
        assert stored[chunk.start : chunk.end] == chunk.text


def test_b10_emoji_are_never_cut_and_lone_halves_are_replaced() -> None:
    chunks = chunks_of(parse_bytes(("🙂" * 3_000).encode(), "a.txt"))
    assert "".join(chunk.text for chunk in chunks) == "🙂" * 3_000
    assert text_of(parse_bytes(b'{"a": "ok \\ud83d", "b": "\\ud83d\\ude42"}', "a.json")) == "a: ok \ufffd\n\nb: 🙂"


def test_b13_text_is_stored_composed() -> None:
    text = text_of(parse_case("enc_nfd_body.md"))
    assert "학점인정" in text
    assert "Zürich" in text
