"""What agents remember of this key's user: seen, written, exported, deleted and switched off by them alone."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from schemas.memory import MemoryDraft, MemorySwitch, MemoryView
from services.api.authentication import KeyedRoute, Reader, Writer
from services.api.idempotency import OnceKey
from services.api.pagination import Page, Paging
from services.api.state import ServingRole

router = APIRouter(route_class=KeyedRoute, tags=["memories"])
MemoryId = Annotated[str, Path(max_length=200)]


@router.get("/memories")
async def list_memories(caller: Reader, container: ServingRole, paging: Paging) -> Page[MemoryView]:
    """Oldest first; page through them to export them."""
    memories = await container.memories.of_person(caller.actor, paging.after_text(), paging.fetch)
    return paging.page(memories, lambda memory: memory.id)


@router.post("/memories", status_code=201, response_model=MemoryView)
async def add_memory(
    wanted: MemoryDraft, caller: Writer, container: ServingRole, once: OnceKey
) -> MemoryView | Response:
    """One that says the same as an earlier one takes its place."""
    return await once(wanted, lambda: container.memories.add(caller.actor, wanted))


@router.delete("/memories", status_code=204)
async def remove_memories(caller: Writer, container: ServingRole) -> None:
    """All of them."""
    await container.memories.remove_all(caller.actor)


@router.put("/memories/{memory_id}")
async def change_memory(memory_id: MemoryId, wanted: MemoryDraft, caller: Writer, container: ServingRole) -> MemoryView:
    return await container.memories.change(caller.actor, memory_id, wanted)


@router.delete("/memories/{memory_id}", status_code=204)
async def remove_memory(memory_id: MemoryId, caller: Writer, container: ServingRole) -> None:
    await container.memories.remove(caller.actor, memory_id)


@router.get("/memory-switch")
async def memory_switch(caller: Reader, container: ServingRole) -> MemorySwitch:
    return await container.memories.switch(caller.actor)


@router.put("/memory-switch")
async def switch_memory(wanted: MemorySwitch, caller: Writer, container: ServingRole) -> MemorySwitch:
    """Off: nothing is remembered and nothing recalled. What there is stays until it is deleted."""
    return await container.memories.set_switch(caller.actor, wanted)
