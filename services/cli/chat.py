"""`perdure chat`: an agent talked to, one message or line by line, with what it does shown as it does it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.text import Text

from services.cli import output
from services.cli.agents import AgentName
from services.cli.chat_loop import ChatLoop
from services.cli.chat_questions import later_text
from services.cli.chat_screens import screen_for
from services.cli.chat_view import TurnView, result_of, show_request
from services.cli.client import ApiClient
from services.cli.command import AsJson, DataDir, command, open_client
from services.cli.conversation import Conversation, open_conversation
from services.cli.event_stream import follow_run
from services.cli.exit_codes import ExitCode
from services.cli.failures import BadUsage
from services.cli.typed_lines import typed_lines

_WORDS_CHARS = 400


@command
def chat(
    agent: AgentName,
    message: Annotated[
        list[str] | None, typer.Argument(metavar="[MESSAGE…]", help="What to say; without it, line by line.")
    ] = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Go on in this session.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Talk to an agent. Its text streams, its calls are shown, and before it writes it asks.

    Into a pipe goes the finished answer only. Exit code 3 when the turn failed or was cancelled.
    """
    text = " ".join(message or []).strip()
    if as_json and not text:
        raise BadUsage("--json is for one message.", "Give the message after the agent's name.")
    with open_client(data_dir) as client:
        conversation = open_conversation(client, agent, session)
        if text:
            _one_turn(client, conversation, text, as_json)
        else:
            _line_by_line(client, conversation)


def _one_turn(client: ApiClient, conversation: Conversation, text: str, as_json: bool) -> None:
    if conversation.running is not None:
        output.say("Another turn of this session is under way; this one comes after it.")
    run_id = conversation.send(text)
    screen = screen_for(as_json=as_json, takes_lines=False)
    view = TurnView(client, screen, run_id)
    try:
        with screen:
            for event in follow_run(client, run_id):
                for approval in view.apply(event):
                    show_request(screen, approval)
                    screen.remark(later_text(approval))
    except KeyboardInterrupt:
        raise _interrupted(conversation, run_id) from None
    if as_json:
        output.print_json(result_of(conversation.session_id, run_id, view.draft))
    else:
        view.finish()
        _say_what_goes_on(conversation, None)
    if (failure := view.failure()) is not None:
        raise failure


def _line_by_line(client: ApiClient, conversation: Conversation) -> None:
    if sys.stdin.isatty():
        output.say("/help lists the commands, /quit leaves.")
        if conversation.session_id is not None:
            _print_last_words(conversation)
    loop = ChatLoop(
        client, conversation, typed_lines(), lambda: screen_for(as_json=False, takes_lines=sys.stdin.isatty())
    )
    try:
        loop.run()
    except KeyboardInterrupt:
        raise _interrupted(conversation, loop.under_way) from None
    _say_what_goes_on(conversation, loop.under_way)
    if loop.failure is not None and not sys.stdin.isatty():
        raise typer.Exit(loop.failure.exit_code)


def _print_last_words(conversation: Conversation) -> None:
    console = output.out()
    for message in conversation.last_words():
        said = output.one_line(message.text if message.text is not None else "(withheld)")
        text = Text(f"> {said}" if message.role == "user" else said, style="dim")
        text.truncate(_WORDS_CHARS, overflow="ellipsis")
        console.print(text)
    if conversation.running is not None:
        output.say("The turn under way:")


def _interrupted(conversation: Conversation, run_id: str | None) -> typer.Exit:
    output.say("Interrupted.")
    _say_what_goes_on(conversation, run_id)
    return typer.Exit(ExitCode.INTERRUPTED)


def _say_what_goes_on(conversation: Conversation, run_id: str | None) -> None:
    if run_id is not None:
        follow, end = f"`perdure runs watch {run_id}` follows it", f"`perdure runs cancel {run_id}` ends it"
        output.say(f"The turn goes on in the server: {follow}, {end}.")
    if conversation.session_id is not None:
        output.say(f"This conversation goes on with `{conversation.go_on}`.")
