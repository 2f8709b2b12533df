"""Background work gives way to what a person waits for, and never for longer than the bound."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context

from services.stores.precedence import Precedence, prompt

FOREVER_S = 3_600.0


async def test_background_work_waits_until_nobody_is_ahead() -> None:
    precedence = Precedence(FOREVER_S)
    order: list[str] = []

    async def background() -> None:
        await precedence.give_way()
        order.append("background")

    with precedence.ahead():
        with precedence.ahead():
            waiting = asyncio.create_task(_outside(background))
            await asyncio.sleep(0.01)
            order.append("first search")
        await asyncio.sleep(0.01)
        order.append("second search")
    await waiting
    assert order == ["first search", "second search", "background"]


async def test_it_goes_on_after_the_bound_however_many_are_ahead() -> None:
    precedence = Precedence(0.01)
    with precedence.ahead():
        await asyncio.create_task(_outside(precedence.give_way))


async def test_what_a_person_waits_for_passes_and_so_do_the_tasks_it_begins() -> None:
    precedence = Precedence(FOREVER_S)
    with precedence.ahead():
        await precedence.give_way()
        await asyncio.create_task(precedence.give_way())
    with prompt():
        mine = asyncio.create_task(precedence.give_way())
    with precedence.ahead():
        await mine


async def test_a_failed_search_lets_the_others_go_on() -> None:
    precedence = Precedence(FOREVER_S)
    try:
        with precedence.ahead():
            raise ValueError
    except ValueError:
        await precedence.give_way()


async def _outside(work: Callable[[], Coroutine[None, None, None]]) -> None:
    """As work does that no request began: without the mark that the caller's context carries."""
    await asyncio.create_task(work(), context=Context())
