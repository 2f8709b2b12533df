"""Faults of archives that people reported (B74-B77, B88)."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from schemas.errors import PermanentFailure
from schemas.settings import ParsingSettings
from tests.unit.documents.parsing import chunks_of, parse_bytes, parse_case, parse_path


def _zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def _bound(failure: pytest.ExceptionInfo[PermanentFailure]) -> tuple[str, str]:
    return failure.value.code, failure.value.detail.rpartition("(")[2].rstrip(")")


def test_b74_an_archive_that_inflates_a_thousandfold_is_stopped_while_inflating() -> None:
    with pytest.raises(PermanentFailure) as failure:
        parse_bytes(_zip({"big.txt": b"0" * 60_000_000}), "bomb.zip")
    assert _bound(failure) == ("too_large", "PERDURE_PARSING__ARCHIVE_RATIO")


def test_b74_too_many_entries_are_refused() -> None:
    with pytest.raises(PermanentFailure) as failure:
        parse_bytes(_zip({f"f{number}.txt": b"x" for number in range(1_001)}), "many.zip")
    assert _bound(failure) == ("too_many", "PERDURE_PARSING__ARCHIVE_MEMBERS")


@pytest.mark.parametrize(("name", "part"), [("a.zip", "f{}.txt"), ("a.pptx", "ppt/slides/slide{}.xml")])
def test_b76_one_budget_holds_for_all_entries_together(name: str, part: str) -> None:
    files = {part.format(number): b"0123456789" * 100_000 for number in range(12)}
    files["ppt/presentation.xml" if name.endswith("pptx") else "z.txt"] = b"<p/>" + b"0123456789" * 1_100_000
    with pytest.raises(PermanentFailure) as failure:
        parse_bytes(_zip(files), name, ParsingSettings(archive_bytes=10_000_000))
    assert _bound(failure) == ("too_large", "PERDURE_PARSING__ARCHIVE_BYTES")


def test_b77_forty_nested_archives_end_at_the_depth_limit() -> None:
    document = parse_case("z_nested40.zip")
    for depth in (1, 2):
        (member,) = document.members
        document = parse_path(Path(member.file), member.path, depth=depth)
    (member,) = document.members
    with pytest.raises(PermanentFailure) as failure:
        parse_path(Path(member.file), member.path, depth=3)
    assert _bound(failure) == ("too_deep", "PERDURE_PARSING__ARCHIVE_DEPTH")


def test_b88_the_same_bytes_at_two_paths_are_two_members() -> None:
    document = parse_case("z_dup_content.zip")
    assert [member.path for member in document.members] == ["a/k.yaml", "b/k.yaml"]
    (summary,) = chunks_of(document, "pack.zip")
    assert summary.kind == "summary"
    assert (summary.start, summary.end) == (None, None)
    assert "a/k.yaml" in summary.text


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("../../etc/passwd", "etc/passwd"),
        ("..\\..\\x.txt", "x.txt"),
        ("C:/windows/x.txt", "windows/x.txt"),
        ("/abs/x.txt", "abs/x.txt"),
        ("new\nline.txt", "new line.txt"),
        ("\u202efdp.exe", "fdp.exe"),
        ("报销流程.txt", "报销流程.txt"),
        ("...", "..."),
    ],
)
def test_b86_names_of_members_are_made_harmless_and_stay_readable(entry: str, expected: str) -> None:
    document = parse_bytes(_zip({entry: b"text"}), "a.zip")
    assert [member.path for member in document.members] == [expected]
    assert Path(document.members[0].file).name == "member-00000"
