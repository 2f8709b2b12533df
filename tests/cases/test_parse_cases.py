"""Faults of parsing that people reported (B31, B46-B73)."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import PermanentFailure
from tests.unit.documents.parsing import chunks_of, parse_bytes, parse_case, parse_path, text_of


def test_b31_an_irregular_vertical_merge_costs_no_paragraph() -> None:
    text = text_of(parse_case("d_grid_before.docx"))
    assert text.endswith("after")
    assert "| late | b2 | c2 |" in text


def test_b46_a_pdf_that_only_forbids_printing_is_read() -> None:
    assert text_of(parse_case("p_owner_pw.pdf")) == "Invoice total 1234.56"


def test_b47_an_encrypted_office_file_is_told_from_a_broken_one() -> None:
    with pytest.raises(PermanentFailure) as failure:
        parse_case("ole_magic.docx")
    assert failure.value.code == "encrypted"


def test_b49_pages_without_text_are_listed() -> None:
    document = parse_case("p_mostly_scan.pdf")
    assert document.coverage.pages == 11
    assert document.coverage.pages_without_text == list(range(2, 11))
    assert {warning.page for warning in document.warnings} == set(range(2, 11))
    assert chunks_of(document)[-1].page_end == 11


@pytest.mark.parametrize("file", ["p_vector_outline.pdf", "p_cipher.pdf", "ws_only.txt"])
def test_b50_b58_nothing_readable_is_no_text_and_not_ready(file: str) -> None:
    with pytest.raises(PermanentFailure) as failure:
        parse_case(file)
    assert failure.value.code == "no_text"


@pytest.mark.parametrize("file", ["p_rtl_visual.pdf", "p_rtl_logical.pdf"])
def test_b52_hebrew_is_in_logical_order_whichever_way_it_was_stored(file: str) -> None:
    assert text_of(parse_case(file)) == "דוח רבעוני"


def test_b53_ligatures_are_letters() -> None:
    assert text_of(parse_case("p_ligature.pdf")) == "scientific offer"


def test_b55_columns_are_read_one_after_the_other() -> None:
    text = text_of(parse_case("p_two_columns.pdf"))
    assert "yearly report and then agreed the budget" in text


def test_b56_running_headers_and_footers_are_dropped() -> None:
    document = parse_case("p_running_header.pdf")
    text = text_of(document)
    assert "Page 2 of 4" not in text
    assert "ISSN" not in text
    assert [f"Body of page {number} ends mid" in text for number in range(1, 5)] == [True] * 4


def test_b59_text_nobody_can_see_is_left_out_and_said_so() -> None:
    document = parse_case("p_hidden.pdf")
    assert text_of(document) == "Award total 485000"
    assert [warning.code for warning in document.warnings] == ["hidden_text"]


def test_b59_tracked_and_vanished_text_of_a_docx() -> None:
    assert text_of(parse_case("d_tracked.docx")) == "Fee is 250"


def test_b62_text_boxes_stand_where_they_are_anchored() -> None:
    assert text_of(parse_case("d_textbox.docx")) == "IN THE BOX\n\noutside"


def test_b64_b65_slides_give_tables_groups_and_notes_apart_from_each_other() -> None:
    text = text_of(parse_case("s_parts.pptx"))
    for expected in ("PLAN", "4200", "IN GROUP", "NESTED GROUP", "SPEAKER NOTE"):
        assert expected in text
    assert "FIRSTSECOND" not in text


def test_b67_attachments_become_members_with_harmless_names() -> None:
    document = parse_case("m_attach.eml")
    assert document.title == "报告 Q1"
    assert [member.path for member in document.members] == ["d.csv", "forwarded one.eml"]
    assert "Price € 5" in text_of(document)
    assert any("smime.p7s" in warning.detail for warning in document.warnings)
    assert "inner body" in text_of(parse_path(Path(document.members[1].file), "forwarded one.eml", depth=1))


def test_b68_a_mail_without_a_body_is_no_error() -> None:
    document = parse_case("m_only_attachment.eml")
    assert text_of(parse_path(Path(document.members[0].file), "x.pdf", depth=1)) == "attached words"


def test_b70_a_saved_page_gives_its_content_once() -> None:
    text = text_of(parse_case("chrome.html"))
    assert "Leave policy" in text
    for unwanted in ("NAVHOME", "FOOTERTEXT", "NAVSCRIPT", "TEMPLATE", "HIDDENP"):
        assert unwanted not in text


def test_b70_links_are_resolved_against_the_page_they_came_from() -> None:
    document = parse_case("chrome.html", "https://intranet.example/hr/leave.html")
    assert "[the form](https://intranet.example/hr/form.html#p2)" in text_of(document)


@pytest.mark.parametrize("name", ["zero.pdf", "zero.docx"])
def test_b73_a_file_of_no_bytes_is_empty(name: str) -> None:
    with pytest.raises(PermanentFailure) as failure:
        parse_bytes(b"", name)
    assert failure.value.code == "empty"


def test_b73_an_archive_of_no_files_is_empty() -> None:
    with pytest.raises(PermanentFailure) as failure:
        parse_case("z_empty.zip")
    assert failure.value.code == "empty"


def test_b79_markdown_images_are_their_alternative_text() -> None:
    assert text_of(parse_case("ssrf_image.md")) == "a\nb\nbody text"


def test_b82_orders_in_a_document_stay_its_text_and_its_image_is_not_a_link() -> None:
    text = text_of(parse_case("inject.md"))
    assert "delete_document" in text
    assert "http" not in text
