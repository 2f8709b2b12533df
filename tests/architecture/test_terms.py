"""What documents and errors tell a user to type exists: settings, commands, make targets, linked files."""

from __future__ import annotations

import re
import runpy

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from infra.load_settings import NOT_SETTINGS, TEST_PREFIX
from schemas.domain_events import EVENT_TYPES, TOPIC_OF_STREAM
from schemas.settings import Settings
from services.cli.app import app as cli
from services.cli.exit_codes import ExitCode
from tests.architecture.repository import ROOT, text_files

VARIABLE = re.compile(r"\bPERDURE_[A-Z][A-Z0-9_]*[A-Z0-9]\b(?!_)")
COMMAND = re.compile(r"(?:^|[`\s(/])perdure (?P<command>[a-z][a-z-]*)")
MAKE_TARGET = re.compile(r"`make (?P<target>[a-z][a-z-]*)")
LINK = re.compile(r"\]\((?P<target>[^)#\s]+)(?:#[^)]*)?\)")
FENCE = re.compile(r"```.*?```", re.DOTALL)
INLINE_CODE = re.compile(r"`[^`\n]+`")

PROCESS_COMMANDS = {"up", "api", "worker", "consumers", "relay", "rebuild", "events"}
"""Those of infra/main.py; the others are the CLI's own."""


def commands_that_exist() -> set[str]:
    command = typer.main.get_command(cli)
    assert isinstance(command, typer.core.TyperGroup)
    return set(command.commands) | PROCESS_COMMANDS


def is_section(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)


def variables_of(settings: type[BaseModel], prefix: str = "PERDURE_") -> set[str]:
    names: set[str] = set()
    for name, field in settings.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            names |= variables_of(section, f"{prefix}{name.upper()}__")
        else:
            names.add(f"{prefix}{name.upper()}")
    return names


def unknown_variables(text: str) -> set[str]:
    known = variables_of(Settings) | NOT_SETTINGS
    return {name for name in VARIABLE.findall(text) if name not in known and not name.startswith(TEST_PREFIX)}


def commands_in(markdown: str) -> set[str]:
    """Words after `perdure` in code; prose such as "perdure is" is no command."""
    code = FENCE.findall(markdown) + INLINE_CODE.findall(FENCE.sub("", markdown))
    return {match.group("command") for each in code for match in COMMAND.finditer(each)}


def documents() -> list[tuple[str, str]]:
    return [
        (name, text) for name, text in text_files() if name.endswith(".md") and not name.startswith("examples/handbook")
    ]


def test_every_variable_named_anywhere_is_a_setting() -> None:
    """Tests aside: they try wrong names on purpose."""
    texts = [(name, text) for name, text in text_files() if not name.startswith("tests/")]
    assert not {name: unknown for name, text in texts if (unknown := unknown_variables(text))}


def test_documents_name_only_commands_that_exist() -> None:
    assert not {name: extra for name, text in documents() if (extra := commands_in(text) - commands_that_exist())}


def test_documents_name_only_make_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {(name, match) for name, text in documents() for match in MAKE_TARGET.findall(text)}
    assert not {(name, target) for name, target in named if target not in targets}
    assert "test" in targets


def test_the_reference_of_settings_is_current() -> None:
    generator = runpy.run_path(str(ROOT / "docs" / "generate_reference.py"))
    assert generator["SETTINGS_PAGE"].read_text(encoding="utf-8") == generator["settings_page"](), "run: make reference"


def test_every_setting_says_what_it_is() -> None:
    kinds = {field.annotation for field in Settings.model_fields.values()}
    fields = dict(Settings.model_fields)
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            fields |= {f"{kind.__name__}.{name}": field for name, field in kind.model_fields.items()}
    assert not [name for name, field in fields.items() if not is_section(field) and not field.description]


def test_the_reference_of_events_names_every_event_of_the_log() -> None:
    page = (ROOT / "docs" / "reference" / "events.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z]+\.[a-z_]+)`", page.partition("## On Kafka")[2]))
    assert named - set(TOPIC_OF_STREAM.values()) == EVENT_TYPES


def test_the_reference_of_exit_codes_names_every_code() -> None:
    page = (ROOT / "docs" / "reference" / "exit-codes.md").read_text(encoding="utf-8")
    of_processes = {69, 75, 78}  # infra/main.py: an engine is away, the data directory is held, bad settings
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)} == {*ExitCode, *of_processes}


def test_links_between_documents_lead_somewhere() -> None:
    broken = [
        f"{name} -> {target}"
        for name, text in documents()
        for target in LINK.findall(text)
        if "://" not in target and not (ROOT / name).parent.joinpath(target).exists()
    ]
    assert not broken


def test_the_checks_see_what_they_forbid() -> None:
    assert unknown_variables("set PERDURE_CHAT_" + "MODELL") == {"PERDURE_CHAT_" + "MODELL"}
    assert not unknown_variables("PERDURE_PARSING__WALL_S and PERDURE_CHAT_MODEL and PERDURE_* and PERDURE_PARSING__")
    assert commands_in("`perdure fly` and perdure is\n```\n.venv/bin/perdure swim now\n```") == {"fly", "swim"}
