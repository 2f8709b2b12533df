"""What a turn works under is fixed when it begins, so that results stay comparable whatever becomes of its agent."""

from __future__ import annotations

from schemas.agents import AgentConfig, AgentDraft
from schemas.errors import PermanentFailure
from services.agents import limits, policy, prompting, turn_ending
from services.gateways.model_names import EXTRACTIVE
from services.stores import agents_store, turns_store
from services.stores.database import Transaction

SCHEDULING_VERSION = 1
MEMORY_VERSION = 1


async def begin(transaction: Transaction, run_id: str, default_model: str) -> dict[str, int]:
    """Fixes the turn's configuration and gives the version of every policy that it runs under."""
    turn = await turns_store.get(transaction, run_id)
    if turn is None:
        raise PermanentFailure("corrupt", "The turn's row is not there any more")
    if turn["config"] is None:
        agent = await agents_store.get(transaction, turn["agent_id"])
        if agent is None:
            raise PermanentFailure("agent_removed", "The agent of this session was removed")
        config = config_of(agent["id"], agent["version"], AgentDraft.model_validate(agent["draft"]), default_model)
        if config.model == EXTRACTIVE:
            raise PermanentFailure(
                "no_chat_model", "Agents need a chat model: name one in the agent or set PERDURE_CHAT_MODEL"
            )
        await turns_store.fix_config(transaction, run_id, config.model_dump(mode="json"))
    else:
        config = AgentConfig.model_validate(turn["config"])
    return {
        "agent": config.version,
        "prompt": prompting.VERSION,
        "context": prompting.VERSION,
        "memory": MEMORY_VERSION,
        "tools": policy.VERSION,
        "scheduling": SCHEDULING_VERSION,
        "limits": limits.VERSION,
        "completion": turn_ending.VERSION,
    }


def config_of(agent_id: str, version: int, draft: AgentDraft, default_model: str) -> AgentConfig:
    return AgentConfig(
        agent_id=agent_id,
        version=version,
        name=draft.name,
        instructions=draft.instructions,
        model=draft.model or default_model,
        tools=list(draft.tools),
        mode=draft.mode,
        always_ask=list(draft.always_ask),
        limits=draft.limits,
        spaces=draft.spaces,
        approver_roles=list(draft.approver_roles),
    )
