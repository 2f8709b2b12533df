"""What OpenAI's clients call a model: the answers of the documents, or one of the tenant's agents."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.agents import AgentView
from schemas.errors import NotFound
from schemas.openai_protocol import ModelCard
from services.access.authenticate import Caller
from services.container import Serving
from services.stores import agents_store, run_views, turns_store

ANSWERS = "perdure/answers"
AGENT_PREFIX = "perdure/agent/"
MOST_LISTED = 1_000
_PAGE = 100


@dataclass(frozen=True)
class Target:
    """Whom a request is for; without `agent_id`, the answers."""

    model: str
    agent_id: str | None = None


def agent_model(name: str) -> str:
    return AGENT_PREFIX + name


async def resolve(container: Serving, caller: Caller, model: str) -> Target:
    """NotFound("model_not_found") for any other name."""
    if model == ANSWERS:
        return Target(model)
    if model.startswith(AGENT_PREFIX):
        async with container.database.begin(caller.actor.tenant) as transaction:
            agent = await agents_store.by_name(transaction, model.removeprefix(AGENT_PREFIX))
        if agent is not None:
            return Target(model, agent["id"])
    raise _unknown(model)


async def card(container: Serving, caller: Caller, model: str) -> ModelCard:
    target = await resolve(container, caller, model)
    if target.agent_id is None:
        return _answers()
    return _agent(await container.agents.get(caller, target.agent_id))


async def cards(container: Serving, caller: Caller) -> list[ModelCard]:
    """Agents act, so only a key that may write is shown them."""
    found = [_answers()]
    before: str | None = None
    while "write" in caller.scopes and len(found) < MOST_LISTED:
        agents = await container.agents.newest(caller, before, _PAGE)
        found += [_agent(agent) for agent in agents]
        if len(agents) < _PAGE:
            break
        before = agents[-1].id
    return found


async def model_of(container: Serving, caller: Caller, run_id: str) -> str:
    """Whose run it is. NotFound unless it is an answer or a turn that this key's user began."""
    async with container.database.begin(caller.actor.tenant) as transaction:
        run = await run_views.get(transaction, caller.actor, run_id)
        if run is not None and run.kind == "answer":
            return ANSWERS
        turn = await turns_store.get(transaction, run_id) if run is not None else None
        agent = await agents_store.get(transaction, turn["agent_id"]) if turn is not None else None
    if turn is None:
        raise NotFound("There is no response with this id that this key can see.", param="response_id")
    known = agent or turn["config"] or {"name": turn["agent_id"]}
    return agent_model(str(known["name"]))


def _answers() -> ModelCard:
    return ModelCard(id=ANSWERS, created=0, owned_by="perdure")


def _agent(agent: AgentView) -> ModelCard:
    return ModelCard(id=agent_model(agent.name), created=int(agent.created_at.timestamp()), owned_by=agent.owner)


def _unknown(model: str) -> NotFound:
    detail = (
        f"The model '{model[:200]}' does not exist or this key cannot use it. GET /v1/models lists those that it can."
    )
    return NotFound(detail, type="model_not_found", param="model")
