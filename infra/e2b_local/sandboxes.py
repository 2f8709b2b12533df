"""All sandboxes of this server: made, found again, resumed, let go when their time is over."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pydantic import ValidationError

from infra.e2b_local import snapshot
from infra.e2b_local.cell_process import CellFailed
from infra.e2b_local.data_folder import DataFolder
from infra.e2b_local.host import Host
from infra.e2b_local.host_places import new_owner
from infra.e2b_local.sandbox import Sandbox
from infra.e2b_local.sandbox_record import SandboxRecord, new_id, read_record
from infra.e2b_local.workspace import remove_tree

log = logging.getLogger(__name__)
_EXPIRY_EVERY_S, _TRY_AGAIN_S = 0.5, 60.0


class SandboxRefused(Exception):
    """What was asked for cannot be had. `status` is that of the control API; the text is one sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class WrongToken(Exception):
    """The sandbox exists and the caller does not hold its access token."""


@dataclass(frozen=True)
class NewSandbox:
    """What a caller chooses. `key` makes the same request give the same sandbox."""

    template: str
    metadata: dict[str, str]
    envs: dict[str, str]
    timeout_s: int
    on_timeout_pause: bool
    key: str | None = None


class Sandboxes:
    """`refusal` is why no sandbox can run here, None where they can."""

    def __init__(self, data: DataFolder, host: Host, refusal: str | None, now: Callable[[], float] = time.time) -> None:
        self.host = host
        self.refusal = refusal
        self._data, self._now = data, now
        self._by_id: dict[str, Sandbox] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def load(self) -> None:
        """What earlier servers left, mended. Nothing is started: a sandbox starts with its next command."""
        for folder in self._data.sandboxes.iterdir():
            try:
                record = read_record(folder)
            except ValidationError:
                log.exception("%s is left alone: it may be of a later version", folder)
                continue
            if record is None:
                remove_tree(folder)
                continue
            sandbox = self._by_id[record.id] = Sandbox(record, self._data, self.host)
            sandbox.mend()
        for packed in self._data.snapshots.iterdir():
            if not self._data.sandbox(packed.name.removesuffix(".tar.gz")).exists():
                packed.unlink()

    async def create(self, new: NewSandbox) -> Sandbox:
        """Runs when this returns. SandboxRefused: 429 too many, 501 not on this machine, 503 not this time."""
        if self.refusal is not None:
            raise SandboxRefused(501, self.refusal)
        known = next(
            (each for each in self._by_id.values() if new.key is not None and each.record.key == new.key), None
        )
        if known is not None:
            async with known.changing:
                if known.record.id in self._by_id:
                    return known
        self._check_count()
        now = self._now()
        record = SandboxRecord(
            id=new_id(),
            template=new.template,
            metadata=new.metadata,
            envs=new.envs,
            token=secrets.token_hex(32),
            owner=new_owner(),
            key=new.key,
            started_at=now,
            end_at=now + new.timeout_s,
            on_timeout="pause" if new.on_timeout_pause else "kill",
            state="running",
        )
        sandbox = self._by_id[record.id] = Sandbox(record, self._data, self.host)
        try:
            sandbox.create()
            await sandbox.boot()
        except CellFailed as error:
            await self.kill(record.id)
            raise SandboxRefused(503, f"The sandbox could not be started: {error}") from error
        except OSError:
            del self._by_id[record.id]
            raise
        return sandbox

    def all(self) -> Iterable[Sandbox]:
        """By the time of their making."""
        return sorted(self._by_id.values(), key=lambda each: (each.record.started_at, each.record.id))

    def get(self, sandbox_id: str) -> Sandbox:
        """Running or paused. SandboxRefused 404."""
        sandbox = self._by_id.get(sandbox_id)
        if sandbox is None:
            raise SandboxRefused(404, f"sandbox {sandbox_id!r} was not found")
        return sandbox

    def running(self, sandbox_id: str, token: str) -> Sandbox | None:
        """None when it is unknown or paused; WrongToken before anything else is told of it."""
        sandbox = self._by_id.get(sandbox_id)
        if sandbox is None:
            return None
        if not hmac.compare_digest(sandbox.record.token.encode(), token.encode()):
            raise WrongToken
        return sandbox if sandbox.is_running else None

    async def connect(self, sandbox_id: str, timeout_s: int) -> tuple[Sandbox, bool]:
        """(sandbox, whether it had to be resumed). A running one never ends sooner for it."""
        sandbox = self.get(sandbox_id)
        if not sandbox.is_running:
            self._check_count()
        try:
            resumed = await sandbox.resume()  # also one that is just being paused
        except snapshot.BROKEN as error:
            log.exception("resuming %s", sandbox_id)
            detail = f"the files of sandbox {sandbox_id!r} cannot be brought back: {error}"
            raise SandboxRefused(500, detail) from error
        end_at = self._now() + timeout_s
        sandbox.update(end_at=end_at if resumed else max(end_at, sandbox.record.end_at))
        return sandbox, resumed

    def set_timeout(self, sandbox_id: str, timeout_s: int) -> None:
        self.get(sandbox_id).update(end_at=self._now() + timeout_s)

    async def pause(self, sandbox_id: str) -> None:
        """SandboxRefused 409 when it is paused already."""
        if not await self.get(sandbox_id).pause():
            raise SandboxRefused(409, f"sandbox {sandbox_id!r} is paused already")

    async def kill(self, sandbox_id: str) -> None:
        sandbox = self.get(sandbox_id)
        del self._by_id[sandbox_id]
        await sandbox.destroy()

    async def expire(self) -> None:
        """For as long as the server runs: pauses or kills those whose time is over."""
        while True:
            await asyncio.sleep(_EXPIRY_EVERY_S)
            for sandbox in list(self._by_id.values()):
                over = sandbox.is_running and sandbox.record.end_at <= self._now()
                if over and not sandbox.changing.locked():
                    task = asyncio.create_task(self._let_go(sandbox))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(sandbox.close() for sandbox in self._by_id.values()))

    async def _let_go(self, sandbox: Sandbox) -> None:
        try:
            with contextlib.suppress(SandboxRefused):  # somebody was quicker
                act = self.pause if sandbox.record.on_timeout == "pause" else self.kill
                await act(sandbox.record.id)
        except OSError:
            log.exception("letting go of %s, to be tried again", sandbox.record.id)
            sandbox.update(end_at=self._now() + _TRY_AGAIN_S)

    def _check_count(self) -> None:
        most = self.host.limits.sandboxes
        if sum(each.is_running for each in self._by_id.values()) >= most:
            raise SandboxRefused(
                429, f"no more than {most} sandboxes may run at once (limit sandboxes); pause or kill one"
            )
