"""Tools of the session's sandbox: they touch nothing outside it, so no mode asks for them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from schemas.tools import ToolOutcome, ToolSpec
from services.agents.tool import About, CallContext, Unasked, schema_of
from services.agents.workspace import Left, Workspaces
from services.gateways.sandbox import CommandResult

MORE_S = 30.0
"""Beyond the command's own time: for the sandbox to be made or brought back."""
OUTPUTS_HINT = "Files that you put into 'outputs' are given to the person."


class CommandArguments(BaseModel):
    """What the model sends."""

    command: str = Field(min_length=1, max_length=100_000, description="run by bash, with pipefail, in the workspace")
    timeout: float = Field(60, gt=0, le=3_600, description="seconds after which it is ended")


class PathArguments(BaseModel):
    """What the model sends."""

    path: str = Field(min_length=1, max_length=4_096, description="relative to the workspace")


class WriteArguments(PathArguments):
    """What the model sends."""

    text: str = Field(max_length=5_000_000)


class RunCommandTool:
    """Cut off in the middle it is not run again: part of its work may be done, and the model can look."""

    def __init__(self, workspaces: Workspaces, longest_s: float) -> None:
        self._workspaces = workspaces
        self.spec = ToolSpec(
            name="run_command",
            description=f"Runs a command in this session's sandbox. It has no network. {OUTPUTS_HINT}",
            parameters=schema_of(CommandArguments),
            risk="read",
            idempotent=False,
            alone=True,
            timeout_s=longest_s + MORE_S,
        )

    async def about(self, context: CallContext, arguments: dict[str, Any]) -> About:
        return About(preview=str(arguments["command"]))

    async def call(self, context: CallContext, arguments: dict[str, Any]) -> ToolOutcome:
        asked = CommandArguments.model_validate(arguments)
        result = await self._workspaces.run(context, asked.command, asked.timeout)
        left = await self._workspaces.take_outputs(context)
        return ToolOutcome(
            ok=result.exit_code == 0,
            text="\n".join(filter(None, [_told(result), _left(left)])),
            summary=_summary(result, left),
        )

    async def prepare(self, context: CallContext) -> None:
        """The sandbox is there and answers."""
        await self._workspaces.ready(context)

    async def abandon(self, context: CallContext) -> None:
        """When the call is stopped, its command is."""
        await self._workspaces.stop(context)


class WriteFileTool:
    """Writing the same text twice is writing it once."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self.spec = ToolSpec(
            name="write_file",
            description=f"Writes a text file in this session's sandbox. {OUTPUTS_HINT}",
            parameters=schema_of(WriteArguments),
            risk="read",
            alone=True,
        )

    async def about(self, context: CallContext, arguments: dict[str, Any]) -> About:
        return About(preview=str(arguments["path"]))

    async def call(self, context: CallContext, arguments: dict[str, Any]) -> ToolOutcome:
        asked = WriteArguments.model_validate(arguments)
        await self._workspaces.write(context, asked.path, asked.text.encode())
        left = await self._workspaces.take_outputs(context)
        said = f"Wrote {asked.path}."
        return ToolOutcome(
            text="\n".join(filter(None, [said, _left(left)])), summary=" ".join([said, _left(left)]).strip()
        )


class ReadFileTool(Unasked):
    """Text is given as text; other bytes are only counted."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self.spec = ToolSpec(
            name="read_file",
            description="Reads a text file of this session's sandbox.",
            parameters=schema_of(PathArguments),
            risk="read",
        )

    async def call(self, context: CallContext, arguments: dict[str, Any]) -> ToolOutcome:
        asked = PathArguments.model_validate(arguments)
        data = await self._workspaces.read(context, asked.path)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return ToolOutcome(text=f"{asked.path} has {len(data)} bytes that are no UTF-8 text.", summary="no text")
        return ToolOutcome(text=text.replace("\x00", "\ufffd") or "(empty)", summary=f"{len(data)} bytes")


class ListFilesTool(Unasked):
    """One folder, not what is below it."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self.spec = ToolSpec(
            name="list_files",
            description="Lists a folder of this session's sandbox.",
            parameters=schema_of(PathArguments),
            risk="read",
        )

    async def call(self, context: CallContext, arguments: dict[str, Any]) -> ToolOutcome:
        asked = PathArguments.model_validate(arguments)
        files = await self._workspaces.list_folder(context, asked.path)
        lines = [f"{file.kind}  {file.size}  {file.path}" for file in files]
        return ToolOutcome(text="\n".join(lines) or "(empty)", summary=f"{len(files)} entries")


def _told(result: CommandResult) -> str:
    how = f"exit code {result.exit_code}" if result.ended == "exited" else f"{result.ended}: {result.detail}"
    cut = f"[{result.left_out} characters left out in the middle]" if result.left_out else ""
    parts = [
        how,
        f"stdout:\n{result.stdout}" if result.stdout else "",
        f"stderr:\n{result.stderr}" if result.stderr else "",
    ]
    return "\n".join(filter(None, [*parts, cut]))


def _summary(result: CommandResult, left: list[Left]) -> str:
    how = f"exit code {result.exit_code}" if result.ended == "exited" else result.ended
    return " ".join(filter(None, [how, _left(left)]))


def _left(left: list[Left]) -> str:
    return f"Given to the person: {', '.join(each.name for each in left)}." if left else ""
