"""The example handbook: its generated files are current, and its questions have the answers they claim."""

from __future__ import annotations

import email
import email.policy
import importlib
import io
import json
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from docx import Document
from pptx import Presentation
from pypdfium2 import PdfDocument
from python_calamine import CalamineWorkbook

EXAMPLES = Path(__file__).parents[3] / "examples"
HANDBOOK = EXAMPLES / "handbook"
QUESTIONS = json.loads((EXAMPLES / "questions.json").read_text(encoding="utf-8"))


def handbook_files() -> list[str]:
    return sorted(path.relative_to(HANDBOOK).as_posix() for path in HANDBOOK.rglob("*") if path.is_file())


def text_of(path: Path) -> str:
    """What a reader sees in the file, in the plainest way, so that no parser of the product vouches for itself."""
    match path.suffix:
        case ".pdf":
            texts = [page.get_textpage().get_text_range() for page in PdfDocument(path)]
        case ".docx":
            document = Document(str(path))
            texts = [paragraph.text for paragraph in document.paragraphs]
            texts += [cell.text for table in document.tables for row in table.rows for cell in row.cells]
        case ".pptx":
            slides = list(Presentation(str(path)).slides)
            texts = [shape.text_frame.text for slide in slides for shape in slide.shapes if shape.has_text_frame]
            texts += [slide.notes_slide.notes_text_frame.text for slide in slides]
        case ".xlsx":
            book = CalamineWorkbook.from_path(path)
            rows = [row for name in book.sheet_names for row in book.get_sheet_by_name(name).to_python()]
            texts = [str(value) for row in rows for value in row]
        case ".eml":
            body = email.message_from_bytes(path.read_bytes(), policy=email.policy.default).get_body(("plain",))
            texts = [body.get_content() if body else ""]
        case _:
            texts = [path.read_text(encoding="utf-8")]
    return " ".join(" ".join(texts).split())


def parts(data: bytes) -> dict[str, bytes]:
    """An Office file's members (compressed bytes differ from one zlib to the next), anything else as it is."""
    if not data.startswith(b"PK"):
        return {"": data}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def test_committed_binary_files_are_what_the_generator_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    made = importlib.import_module("make_handbook").made_files()
    stale = [path for path, data in made.items() if parts(data) != parts((HANDBOOK / path).read_bytes())]
    assert not stale, f"run examples/make_handbook.py: {stale}"


def test_handbook_has_every_format_and_stays_small() -> None:
    files = handbook_files()
    assert {Path(name).suffix for name in files} == {
        ".md", ".html", ".pdf", ".docx", ".xlsx", ".pptx", ".csv", ".eml",
    }  # fmt: skip
    assert sum((HANDBOOK / name).stat().st_size for name in files) < 300_000


def test_spreadsheet_formulas_carry_stored_values() -> None:
    book = CalamineWorkbook.from_path(HANDBOOK / "finance/equipment-prices.xlsx")
    assert len(book.sheet_names) == 3
    assert [row[-1] for row in book.get_sheet_by_name("Laptops").to_python()[1:]] == [1475, 2950, 800, 237.5, 120]


def test_questions_are_enough_and_well_formed() -> None:
    assert len({question["id"] for question in QUESTIONS}) == len(QUESTIONS) >= 40
    assert sum(not question["answerable"] for question in QUESTIONS) >= 12
    assert Counter(question["language"] for question in QUESTIONS if question.get("demo")) == {"en": 2, "zh": 1}
    for question in QUESTIONS:
        assert bool(question["documents"]) == bool(question["must_contain"]) == question["answerable"], question["id"]


def test_every_answer_stands_in_its_document() -> None:
    texts = {name: text_of(HANDBOOK / name) for name in handbook_files()}
    missing = [
        (question["id"], document, string)
        for question in QUESTIONS
        for document in question["documents"]
        for string in question["must_contain"]
        if string not in texts[document]
    ]
    assert not missing


def test_every_document_answers_a_question() -> None:
    asked = {document for question in QUESTIONS for document in question["documents"]}
    assert set(handbook_files()) == asked
