"""Two uploads and a delete of one document in flight at once: the last word of the caller holds, in every order."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from itertools import permutations
from threading import Barrier, Thread

import pytest

from tests.durability.children import EMBEDDER, children, send
from tests.durability.conversation import (
    document,
    facts_of,
    make_space,
    remove,
    search,
    upload,
    wait_for_all_runs,
    wait_for_state,
)
from tests.durability.index_contents import read_indexes
from tests.durability.material import long_text
from tests.durability.proofs import prove_audited, prove_one_end, prove_ready, prove_removed
from tests.running.processes import PerdureProcess

OLD, SECOND, THIRD = 5, 7, 9
"""Sections of the document that was there before, and of the two uploads."""
ORDERS = list(permutations(["second", "third", "delete"]))


@dataclass
class Told:
    """What was done to one name, and by which documents it was and is known."""

    name: str
    first: str
    documents: list[str] = field(default_factory=list)
    living: dict[str, int] = field(default_factory=dict)
    """The document that must be there in the end, with its newest version; empty when it was deleted last."""
    sections: int = 0


def begin(perdure: PerdureProcess, label: str) -> list[Told]:
    """A ready document for each order."""
    told = []
    for order in ORDERS:
        name = f"{label}-{'-'.join(order)}"
        receipt = upload(perdure, f"{name}.md", long_text(name, OLD))
        told.append(Told(name, receipt["document_id"], [receipt["document_id"]], {receipt["document_id"]: 1}))
    for each in told:
        wait_for_state(perdure, each.first, "ready")
    return told


def act(perdure: PerdureProcess, told: Told, step: str) -> None:
    """Does one step and keeps what must follow from it."""
    if step == "delete":
        (target,) = told.living or {told.documents[-1]: 0}
        remove(perdure, target)
        told.living = {}
        return
    sections = SECOND if step == "second" else THIRD
    receipt = upload(perdure, f"{told.name}.md", long_text(told.name, sections))
    if receipt["document_id"] not in told.documents:
        told.documents.append(receipt["document_id"])
    told.living, told.sections = {receipt["document_id"]: receipt["version"]}, sections


def prove_last_word(perdure: PerdureProcess, told: Told) -> None:
    for gone in set(told.documents) - set(told.living):
        prove_removed(perdure, gone)
    for document_id, version in told.living.items():
        prove_ready(perdure, document_id, version=version)
        assert len(facts_of(perdure).chunks(document_id)) >= told.sections
        with perdure.client() as client:
            text = client.get(f"/documents/{document_id}/text").text
        assert f"## Station {told.sections} of" in text
        assert f"## Station {told.sections + 1} of" not in text
    hits = search(perdure, f"Station 5 of {told.name}", limit=50)
    of_name = {hit["document_id"]: hit["document_version"] for hit in hits if hit["document_id"] in told.documents}
    assert of_name == told.living


def prove_indexes(perdure: PerdureProcess, everything: list[Told]) -> None:
    """Read after a kill: exactly the chunks of what lives, of nothing else."""
    wanted = {living: facts_of(perdure).chunks(living) for told in everything for living in told.living}
    perdure.kill()
    contents = read_indexes(perdure.data_dir)
    for told in everything:
        for document_id in told.documents:
            contents.assert_holds_once(document_id, wanted.get(document_id, []), f"{told.name} {document_id}")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("killed", [False, True], ids=["undisturbed", "killed"])
def test_the_last_word_holds_in_every_order(perdure: PerdureProcess, killed: bool) -> None:
    perdure.start()
    make_space(perdure)
    everything = begin(perdure, "killed" if killed else "undisturbed")
    held = children(perdure, EMBEDDER)
    send(held, signal.SIGSTOP)  # nothing can end before all has been said
    for position in range(3):
        for order, told in zip(ORDERS, everything, strict=True):
            act(perdure, told, order[position])
    if killed:
        perdure.kill()
        perdure.start()
    else:
        send(held, signal.SIGCONT)
    wait_for_all_runs(perdure)
    for told in everything:
        prove_last_word(perdure, told)
    prove_audited(perdure)
    prove_indexes(perdure, everything)


@pytest.mark.timeout(1800)
def test_calls_at_the_same_moment_leave_one_truth(perdure: PerdureProcess) -> None:
    if not perdure.running:
        perdure.start()
    make_space(perdure)
    rounds = 4
    names = [f"moment-{number}" for number in range(rounds)]
    firsts = [upload(perdure, f"{name}.md", long_text(name, 3))["document_id"] for name in names]
    for first in firsts:
        wait_for_state(perdure, first, "ready")
    receipts: dict[str, list[str]] = {name: [] for name in names}
    at_once = Barrier(3 * rounds)

    def send(name: str, sections: int) -> None:
        at_once.wait()
        receipts[name].append(upload(perdure, f"{name}.md", long_text(name, sections))["document_id"])

    def drop(first: str) -> None:
        at_once.wait()
        remove(perdure, first)

    threads = [Thread(target=send, args=(name, sections)) for name in names for sections in (4, 5)]
    threads += [Thread(target=drop, args=(first,)) for first in firsts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_for_all_runs(perdure)
    for name, first in zip(names, firsts, strict=True):
        assert len(receipts[name]) == 2
        prove_removed(perdure, first)
        for later in set(receipts[name]) - {first}:
            found = document(perdure, later)
            assert found is not None
            prove_ready(perdure, later, version=found["version"])
    prove_audited(perdure)


@pytest.mark.timeout(1800)
def test_cancelled_work_can_be_taken_up_again_and_holds_up_nothing(perdure: PerdureProcess) -> None:
    if not perdure.running:
        perdure.start()
    make_space(perdure)
    held = children(perdure, EMBEDDER)
    send(held, signal.SIGSTOP)
    cancelled = upload(perdure, "cancelled.md", long_text("cancelled", 5))
    document_id = cancelled["document_id"]
    wait_for_state(perdure, document_id, "embedding")
    with perdure.client() as client:
        assert client.post(f"/documents/{document_id}/cancel").status_code == 202
    assert wait_for_state(perdure, document_id, "cancelled")["live_version"] is None
    prove_one_end(perdure, cancelled["run_id"], "cancelled")
    send(held, signal.SIGCONT)
    other = upload(perdure, "other.md", long_text("other", 5))["document_id"]
    with perdure.client() as client:
        reply = client.post(f"/documents/{document_id}/retry")
    assert reply.status_code == 202
    for each in (document_id, other):
        assert wait_for_state(perdure, each, "ready")["searchable"]
    prove_one_end(perdure, reply.json()["run_id"])
    prove_audited(perdure)
