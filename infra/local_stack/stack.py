"""Which engines a machine needs, started together, ended in order."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.local_stack import process_record
from infra.local_stack.data_dir import DataDir
from infra.local_stack.kafka_engine import KafkaEngine
from infra.local_stack.ports import RememberedPorts
from infra.local_stack.postgres_engine import PostgresEngine
from infra.local_stack.postgres_identity import choose_identity, installed_programs
from infra.local_stack.sandbox_engine import SandboxEngine
from infra.local_stack.supervised_process import Command, Program, SupervisedProcess
from infra.local_stack.temporal_engine import TemporalEngine
from schemas.settings import Settings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EngineAddresses:
    """Where the engines are, embedded or given. `temporal_ui_url` is None for a Temporal that is not ours."""

    database_url: str
    temporal_address: str
    temporal_ui_url: str | None
    kafka_bootstrap: str


class ChildProgram(Program):
    """A program of our own that has no address to wait for."""

    def __init__(self, name: str, command: Command) -> None:
        self.name = name
        self._command = command

    def command(self) -> Command:
        return self._command


class LocalStack:
    """The embedded engines under one data directory, which the caller holds.

    An engine whose address is in the settings is not started. What dies is started again on the same address, and
    `on_restart` is told its name. To be used on the main thread's event loop.
    """

    def __init__(
        self,
        settings: Settings,
        data_dir: DataDir,
        on_restart: Callable[[str], None] = lambda name: None,
        rng: random.Random | None = None,
    ) -> None:
        self._settings = settings
        self._data_dir = data_dir
        self._on_restart = on_restart
        self._rng = rng or random.Random()
        self._postgres: PostgresEngine | None = None
        self._engines: dict[str, SupervisedProcess] = {}
        self._children: dict[str, SupervisedProcess] = {}
        self._ports: RememberedPorts | None = None
        self._sandboxes: SandboxEngine | None = None
        self._starting_sandboxes = asyncio.Lock()

    async def start(self) -> EngineAddresses:
        """Ends what a killed run left, then starts all engines at once; returns when each of them answers.

        Raises EngineDown or DataDirUnusable, and then nothing is left running.
        """
        await process_record.end_leftovers(self._data_dir.run)
        try:
            return await self._start_engines()
        except BaseExceptionGroup as failures:
            await self.stop()
            raise failures.exceptions[0] from None
        except BaseException:
            await self.stop()
            raise

    async def _start_engines(self) -> EngineAddresses:
        settings, data_dir = self._settings, self._data_dir
        ports = RememberedPorts(data_dir.run / "ports.json", self._rng)
        self._postgres = None if settings.database_url else _postgres(data_dir)
        temporal = None if settings.temporal_address else TemporalEngine(data_dir, ports, settings.temporal_namespace)
        kafka = None if settings.kafka_bootstrap else KafkaEngine(data_dir, ports)
        self._ports = ports
        programs: list[Program] = [program for program in (self._postgres, temporal, kafka) if program is not None]
        self._engines = {program.name: self._supervise(program) for program in programs}
        async with asyncio.TaskGroup() as group:
            for engine in self._engines.values():
                group.create_task(engine.start())
        return EngineAddresses(
            database_url=self._postgres.url if self._postgres else str(settings.database_url),
            temporal_address=temporal.address if temporal else str(settings.temporal_address),
            temporal_ui_url=temporal.ui_url if temporal else None,
            kafka_bootstrap=kafka.bootstrap if kafka else str(settings.kafka_bootstrap),
        )

    async def sandboxes(self) -> SandboxEngine:
        """The sandbox server, started by whoever asks first: most starts of a machine run no command of an agent.

        Raises EngineDown when it does not come up.
        """
        async with self._starting_sandboxes:
            if self._sandboxes is None:
                assert self._ports is not None
                engine = SandboxEngine(self._data_dir, self._ports, self._settings.sandboxes.limits)
                child = self._supervise(engine)
                self._children[engine.name] = child
                await child.start()
                self._sandboxes = engine
            return self._sandboxes

    async def run_child(
        self,
        name: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: Path | None = None,
        stop_within_s: float = 4.0,
    ) -> None:
        """Starts a program of ours and keeps it running like an engine; its output goes to `logs/<name>.log`.

        `argv[0]` is a path and `env` is the whole environment. It is ended (SIGTERM) before the engines are.
        """
        command = Command(tuple(argv), env, cwd or self._data_dir.path, stop_within_s=stop_within_s)
        child = self._supervise(ChildProgram(name, command))
        self._children[name] = child
        await child.start()

    async def stop(self) -> None:
        """First what uses the engines, then Temporal and Kafka, then the facts they rest on. At most 13 s."""
        await _stop_all([*self._children.values()])
        await _stop_all([engine for name, engine in self._engines.items() if name != PostgresEngine.name])
        await _stop_all([engine for name, engine in self._engines.items() if name == PostgresEngine.name])
        self._children, self._engines, self._sandboxes = {}, {}, None
        if self._postgres is not None:
            self._postgres.clean_up()
            self._postgres = None

    def pids(self) -> dict[str, int]:
        """The running processes by name; one that is being started again is missing."""
        everything = {**self._engines, **self._children}
        return {name: process.pid for name, process in everything.items() if process.pid is not None}

    def _supervise(self, program: Program) -> SupervisedProcess:
        return SupervisedProcess(program, self._data_dir, self._on_restart)


def _postgres(data_dir: DataDir) -> PostgresEngine:
    programs = installed_programs()
    return PostgresEngine(data_dir, programs, choose_identity(programs))


async def _stop_all(processes: list[SupervisedProcess]) -> None:
    results = await asyncio.gather(*(process.stop() for process in processes), return_exceptions=True)
    for process, result in zip(processes, results, strict=True):
        if isinstance(result, BaseException):
            log.error("stopping %s: %s", process.name, result)
