"""The built-in embedding model with its real child process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from schemas.errors import TransientFailure
from schemas.settings import EmbeddingSettings
from services.gateways.local_embedding import LocalEmbedding
from services.gateways.python_child import python_command, python_environment
from tests.integration.gateways.model_folder import FOLDER

TEXTS = [f"Paragraph {number} says who approves travel above {number} euro." for number in range(12)]


@pytest.fixture
async def model() -> AsyncIterator[LocalEmbedding]:
    model = LocalEmbedding(FOLDER, EmbeddingSettings(threads=2, niceness=7))
    yield model
    await model.stop()


def child_of(model: LocalEmbedding) -> int:
    assert model.child_pid is not None
    return model.child_pid


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def until_gone(pid: int) -> None:
    async with asyncio.timeout(10):
        while is_running(pid):
            await asyncio.sleep(0.02)


async def test_a_question_finds_the_passage_that_answers_it_across_languages(model: LocalEmbedding) -> None:
    passages = [
        "Travel above 2,000 euro is approved by the finance director.",
        "The canteen opens at eleven and closes at two.",
        "员工每年享有十五天带薪年假，须提前三个工作日申请。",
    ]
    vectors = await model.embed_passages(passages)
    assert vectors.shape == (3, model.dimensions)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    for question, best in (("Who approves expensive trips?", 0), ("When can I have lunch?", 1), ("年假有多少天？", 2)):
        assert int(np.argmax(vectors @ await model.embed_query(question))) == best


async def test_the_child_runs_at_the_priority_of_the_settings(model: LocalEmbedding) -> None:
    await model.embed_passages(["a"])
    assert os.getpriority(os.PRIO_PROCESS, child_of(model)) == os.getpriority(os.PRIO_PROCESS, 0) + 7


async def test_callers_at_once_each_get_their_own_vectors(model: LocalEmbedding) -> None:
    alone = await model.embed_passages(TEXTS)
    parts = await asyncio.gather(*(model.embed_passages(TEXTS[first : first + 3]) for first in range(0, 12, 3)))
    assert np.array_equal(np.concatenate(parts), alone)


async def test_a_killed_child_fails_its_request_as_transient_and_the_next_gets_a_new_child(
    model: LocalEmbedding,
) -> None:
    before = await model.embed_passages(TEXTS[:2])
    request = asyncio.create_task(model.embed_passages(TEXTS * 20))
    await asyncio.sleep(0)
    killed = child_of(model)
    os.kill(killed, signal.SIGKILL)
    with pytest.raises(TransientFailure) as caught:
        await request
    assert caught.value.code == "model_unavailable"
    assert np.array_equal(await model.embed_passages(TEXTS[:2]), before)
    assert child_of(model) != killed


async def test_a_child_that_hangs_is_replaced() -> None:
    slow = LocalEmbedding(FOLDER, EmbeddingSettings(timeout_s=3))
    try:
        await slow.embed_passages(["warm"])
        stopped = child_of(slow)
        os.kill(stopped, signal.SIGSTOP)
        with pytest.raises(TransientFailure):
            await slow.embed_passages(["never"])
        await until_gone(stopped)
        assert (await slow.embed_passages(["again"])).shape == (1, 384)
    finally:
        await slow.stop()


async def test_a_cancelled_caller_leaves_the_pipes_in_order(model: LocalEmbedding) -> None:
    expected = await model.embed_passages(TEXTS[:3])
    child = child_of(model)
    for _ in range(5):
        request = asyncio.create_task(model.embed_passages(TEXTS))
        await asyncio.sleep(0.03)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert np.array_equal(await model.embed_passages(TEXTS[:3]), expected)
    assert child_of(model) == child


async def test_stopping_ends_the_child_and_fails_what_waits(model: LocalEmbedding) -> None:
    await model.embed_passages(["warm"])
    request = asyncio.create_task(model.embed_passages(TEXTS * 20))
    await asyncio.sleep(0.05)
    child = child_of(model)
    await model.stop()
    with pytest.raises(TransientFailure):
        await request
    await until_gone(child)


async def test_the_child_ends_when_its_parent_is_killed() -> None:
    program = (
        "import asyncio\n"
        "from pathlib import Path\n"
        "from schemas.settings import EmbeddingSettings\n"
        "from services.gateways.local_embedding import LocalEmbedding\n"
        "async def main():\n"
        f"    model = LocalEmbedding(Path({str(FOLDER)!r}), EmbeddingSettings())\n"
        "    await model.embed_passages(['a'])\n"
        "    print(model.child_pid, flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    command = [python_command("x")[0], "-P", "-c", program]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=python_environment())
    assert parent.stdout is not None
    child = int(await asyncio.to_thread(parent.stdout.readline))
    assert is_running(child)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    await until_gone(child)


async def test_a_query_asked_again_gives_the_very_same_array(model: LocalEmbedding) -> None:
    first = await model.embed_query("Who pays?")
    assert await model.embed_query("Who pays?") is first
    assert not first.flags.writeable
    assert await model.embed_query("Who pays") is not first


async def test_texts_no_tokenizer_likes_are_embedded_all_the_same(model: LocalEmbedding) -> None:
    texts = ["", "\0", "\ud800", " \n ", "x" * 300_000, "字" * 300_000, "👨‍👩‍👧" * 1_000]
    vectors = await model.embed_passages(texts)
    assert np.isfinite(vectors).all()
    assert np.isfinite(await model.embed_query("\udfff\0")).all()


async def test_no_texts_give_no_vectors(model: LocalEmbedding) -> None:
    assert (await model.embed_passages([])).shape == (0, 384)
