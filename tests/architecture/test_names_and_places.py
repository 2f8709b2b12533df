"""A file has the name of its noun or act and stands where a newcomer looks; the repository knows no machine but its user's."""

from __future__ import annotations

import re

from tests.architecture.repository import PRODUCT_PACKAGES, ROOT, files, is_ignored, place, python_files, text_files

TOP_LEVEL = {
    "Makefile", "pyproject.toml", "uv.lock", "README.md", "CHANGELOG.md", "LICENSE", ".gitignore", ".ci",
    "schemas", "services", "activities", "workflows", "infra", "terraform", "tests", "docs", "examples",
}  # fmt: skip
TEST_LEVELS = {
    "fakes", "peers", "cases", "architecture", "unit", "integration", "workflows", "replay", "durability", "acceptance",
    "bench", "world", "running",
}  # fmt: skip
VAGUE_NAME = re.compile(r"_*(?:utils?|helpers?|common|managers?)(?:_.*)?$|.*_(?:utils?|helpers?|managers?)$")
NEEDS_TESTS_BESIDE = {"conftest", "__init__"}
MACHINE_PATH = re.compile(r"(?<![\w.~$}/-])/(?:work|farm|root|home/\w+|Users/\w+)/[\w.]")
SCRATCH_PATH = re.compile(r"(?<![\w.~$}/-])/tmp/[a-z]")


def is_vague(stem: str) -> bool:
    return VAGUE_NAME.match(stem) is not None


def machine_paths(text: str, *, in_tests: bool) -> list[str]:
    """Paths of one machine in `text`; tests may speak of /tmp, where a file name is only data."""
    patterns = (MACHINE_PATH,) if in_tests else (MACHINE_PATH, SCRATCH_PATH)
    return [match.group() for pattern in patterns for match in pattern.finditer(text)]


def test_the_top_level_is_fixed() -> None:
    assert {path.name for path in ROOT.iterdir() if not is_ignored(path.name)} <= TOP_LEVEL


def test_tests_stand_in_the_folder_of_their_level() -> None:
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and not is_ignored(path.name)}
    assert folders <= TEST_LEVELS
    loose = {path.stem for path in (ROOT / "tests").glob("*.py")}
    assert loose <= NEEDS_TESTS_BESIDE


def test_every_package_folder_is_marked_as_one() -> None:
    """Without `__init__.py` neither import-linter nor mypy would look inside."""
    folders = {path.parent for path in python_files(*PRODUCT_PACKAGES, "tests")}
    exempt = {folder for folder in folders if "versions" in folder.parts or "migrations" in folder.parts}
    assert not [place(folder) for folder in sorted(folders - exempt) if not (folder / "__init__.py").exists()]


def test_no_file_or_folder_is_called_utils_helpers_common_or_manager() -> None:
    packages = [ROOT / package for package in (*PRODUCT_PACKAGES, "tests", "docs") if (ROOT / package).is_dir()]
    paths = [path.relative_to(ROOT) for package in packages for path in files(package)]
    names = {parent for path in paths for parent in path.parents} | {path for path in paths if path.suffix == ".py"}
    assert not sorted(str(path) for path in names if is_vague(path.stem))


def test_the_repository_names_no_machine_path() -> None:
    found = {
        name: paths for name, text in text_files() if (paths := machine_paths(text, in_tests=name.startswith("tests/")))
    }
    assert not found


def test_the_checks_see_what_they_forbid() -> None:
    assert all(
        is_vague(stem)
        for stem in ("utils", "helpers", "common", "manager", "utils_text", "common_types", "run_manager")
    )
    assert not any(is_vague(stem) for stem in ("retry", "communication", "management", "utilisation"))
    assert machine_paths("open('/wo" + "rk/shared/x')", in_tests=True)
    assert machine_paths("see /tm" + "p/scratch", in_tests=False)
    assert not machine_paths("https://example.org/work/item and $HOME/work/item and /workspace/item", in_tests=False)
