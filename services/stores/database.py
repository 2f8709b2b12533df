"""The only place that opens Postgres transactions. Each is bound to one tenant by row-level security (invariant 12).

A transaction sets `perdure.tenant`, and the policies show and accept rows of that tenant alone, also to the tables' owner:
a forgotten WHERE clause can then not leak. Work that serves all tenants (the relay, the reconciler, rebuilds) says so by
`every_tenant(reason)`. Policies do not hold for superusers, so `infra/migrate.py` refuses to work as one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, cast

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from sqlalchemy import CursorResult, Executable, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from schemas.errors import EngineDown, TransientFailure
from services.stores.precedence import Precedence
from services.stores.prepared import Prepared

Row = Mapping[str, Any]
"""A row as stores give it to services: a mapping by column name."""
Driver = psycopg.AsyncConnection[Any]

EVERY_TENANT = "*"
_RETRYABLE = {"40001", "40P01", "55P03", "57014"}  # serialization, deadlock, lock timeout, statement timeout


_LOCK = Prepared(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"))
_LOCK_SHARED = Prepared(text("SELECT pg_advisory_xact_lock_shared(hashtextextended(:name, 0))"))


class Transaction:
    """One transaction of one tenant. `now` is fixed at its beginning, so every row it writes carries one time."""

    def __init__(self, connection: AsyncConnection, driver: Driver, tenant: str, now: datetime) -> None:
        self._connection = connection
        self._driver = driver
        self._locked: set[str] = set()
        self.tenant = tenant
        self.now = now

    async def execute(
        self, statement: Executable, parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    ) -> CursorResult[Any]:
        return await self._connection.execute(statement, parameters)

    async def all(self, statement: Executable | Prepared, parameters: Mapping[str, Any] | None = None) -> Sequence[Row]:
        if isinstance(statement, Prepared):
            return await (await self._send(statement, parameters)).fetchall()
        return [cast(Row, row) for row in (await self.execute(statement, parameters)).mappings()]

    async def one_or_none(
        self, statement: Executable | Prepared, parameters: Mapping[str, Any] | None = None
    ) -> Row | None:
        rows = await self.all(statement, parameters)
        if len(rows) > 1:
            raise ValueError("more than one row")
        return rows[0] if rows else None

    async def scalar(self, statement: Executable | Prepared, parameters: Mapping[str, Any] | None = None) -> Any:
        rows = await self.all(statement, parameters)
        return next(iter(rows[0].values())) if rows else None

    async def run(self, statement: Prepared, parameters: Mapping[str, Any] | None = None) -> int:
        """For what gives no rows: how many it changed."""
        return (await self._send(statement, parameters)).rowcount

    async def _send(
        self, statement: Prepared, parameters: Mapping[str, Any] | None
    ) -> psycopg.AsyncCursor[dict[str, Any]]:
        cursor = self._driver.cursor(row_factory=dict_row)
        return await cursor.execute(statement.sql.encode(), statement.parameters(parameters, Jsonb))

    async def notify(self, channel: str, payload: str) -> None:
        """Wakes listeners after commit; Postgres drops repeats of the same payload within one transaction."""
        await self.execute(text("SELECT pg_notify(:channel, :payload)"), {"channel": channel, "payload": payload})

    async def lock(self, name: str, *, shared: bool = False) -> None:
        """Takes an advisory lock that ends with this transaction; one that it holds alone already is not asked for again."""
        if name in self._locked:
            return
        await self.run(_LOCK_SHARED if shared else _LOCK, {"name": name})
        if not shared:
            self._locked.add(name)

    async def try_lock(self, name: str) -> bool:
        statement = text("SELECT pg_try_advisory_xact_lock(hashtextextended(:name, 0))")
        return bool(await self.scalar(statement, {"name": name}))


class Database:
    """A pool of connections to one Postgres. `begin(tenant)` is the blessed way in."""

    def __init__(
        self, url: str, *, pool_size: int = 20, statement_timeout_s: float = 60, give_way_s: float = 0.1
    ) -> None:
        self.url = url
        self.precedence = Precedence(give_way_s)
        options = (
            f"-c statement_timeout={int(statement_timeout_s * 1000)} -c lock_timeout={int(statement_timeout_s * 1000)}"
        )
        self._engine: AsyncEngine = create_async_engine(
            url,
            pool_size=pool_size,
            max_overflow=pool_size,
            pool_timeout=30,
            connect_args={"options": options, "connect_timeout": 5, "prepare_threshold": 3},
            isolation_level="AUTOCOMMIT",  # the BEGIN is ours, see _transaction; commit and rollback stay the driver's
        )

    @asynccontextmanager
    async def begin(self, tenant: str) -> AsyncIterator[Transaction]:
        """A transaction that commits when the block ends well and rolls back when it does not."""
        async with self._transaction(tenant) as transaction:
            yield transaction

    @asynccontextmanager
    async def every_tenant(self, reason: str) -> AsyncIterator[Transaction]:
        """A transaction over all tenants; `reason` says why to whoever reads the call."""
        if not reason:
            raise ValueError("every_tenant needs a reason")
        async with self._transaction(EVERY_TENANT) as transaction:
            yield transaction

    @asynccontextmanager
    async def _transaction(self, tenant: str) -> AsyncIterator[Transaction]:
        if not tenant:
            raise ValueError("a transaction needs a tenant")
        await self.precedence.give_way()
        try:
            async with self._engine.connect() as connection, _begun(connection, tenant) as driver:
                yield Transaction(connection, driver, tenant, datetime.now(UTC))
        except (DBAPIError, psycopg.Error) as error:
            raise _failure_of(error) from error
        except PoolTimeout as error:
            raise EngineDown("postgres", "All connections to Postgres are in use") from error

    async def listen(self, channels: Sequence[str]) -> AsyncIterator[tuple[str, str]]:
        """Yields (channel, payload) of each NOTIFY, over a connection of its own; ends with EngineDown when that is lost."""
        async with await self._listening_connection(channels) as connection:
            try:
                async for notice in connection.notifies():
                    yield notice.channel, notice.payload
            except psycopg.OperationalError as error:
                raise EngineDown("postgres", "The listening connection was lost") from error

    async def _listening_connection(self, channels: Sequence[str]) -> psycopg.AsyncConnection[Any]:
        url = self._engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        try:
            connection = await psycopg.AsyncConnection.connect(url, autocommit=True, connect_timeout=5)
        except psycopg.OperationalError as error:
            raise EngineDown("postgres", "Postgres does not answer") from error
        for channel in channels:
            await connection.execute(psycopg.sql.SQL("LISTEN {}").format(psycopg.sql.Identifier(channel)))
        return connection

    async def ping(self, timeout_s: float = 2) -> None:
        try:
            async with asyncio.timeout(timeout_s), self._engine.connect() as connection:
                await connection.execute(text("SELECT 1"))
        except (DBAPIError, psycopg.OperationalError, TimeoutError) as error:
            raise EngineDown("postgres", "Postgres does not answer") from error

    async def close(self) -> None:
        await self._engine.dispose()


@asynccontextmanager
async def _begun(connection: AsyncConnection, tenant: str) -> AsyncIterator[Driver]:
    """Begins, and commits or rolls back, by the driver. A connection in an unknown state is thrown away."""
    driver: Any = (await connection.get_raw_connection()).driver_connection
    try:
        await driver.execute(_begin_for(tenant))
        yield driver
        await driver.commit()
    except Exception:
        with contextlib.suppress(psycopg.Error):  # the pool finds out when it is broken
            await driver.rollback()
        raise
    except BaseException:  # cancelled, maybe between a statement and its answer
        await connection.invalidate()
        raise


def _begin_for(tenant: str) -> bytes:
    """Both in one round trip: a transaction that only reads a row is half as long for it."""
    literal = psycopg.sql.Literal(tenant).as_string(None)
    return f"BEGIN; SELECT set_config('perdure.tenant', {literal}, true)".encode()


def _failure_of(error: DBAPIError | psycopg.Error) -> Exception:
    """Lost connections are EngineDown, lost races are Transient; a wrong statement stays what it is."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    state = getattr(cause, "sqlstate", None)
    if state in _RETRYABLE:
        return TransientFailure("conflict", "The database was busy with the same rows")
    shutting_down = state is not None and state.startswith(("57P", "08", "53"))
    lost = isinstance(error, DBAPIError) and error.connection_invalidated
    if lost or shutting_down or (state is None and isinstance(cause, psycopg.OperationalError)):
        return EngineDown("postgres", "Postgres does not answer")
    return error
