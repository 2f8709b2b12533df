"""The tools there are, by name: one place that says what may be offered, called and shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from schemas.errors import InvalidRequest
from schemas.tools import ToolSpec
from services.agents.tool import Tool


class ToolRegistry:
    """Built once per process; names are unique."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> None:
        if tool.spec.name in self._tools:
            raise ValueError(f"two tools are called {tool.spec.name}")
        self._tools[tool.spec.name] = tool

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def specs(self, names: Sequence[str]) -> list[ToolSpec]:
        """Those of the named tools that there are now, in the order they were named."""
        return [self._tools[name].spec for name in dict.fromkeys(names) if name in self._tools]

    def names(self) -> list[str]:
        return sorted(self._tools)

    def require(self, names: Iterable[str]) -> None:
        """InvalidRequest that lists the tools there are when one of the names is none."""
        unknown = [name for name in names if name not in self._tools]
        if unknown:
            raise InvalidRequest(
                f"There is no tool '{unknown[0]}'. The tools are: {', '.join(self.names())}.", tools=self.names()
            )
