"""`perdure ask`: a question, the answer as it is written, and the passages it rests on."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from schemas.answers import AnswerStarted, AnswerView
from services.cli import answer_view, output
from services.cli.answer_draft import AnswerDraft
from services.cli.client import ApiClient, path_of
from services.cli.command import AsJson, DataDir, SpaceOption, command, open_client
from services.cli.event_stream import follow_run
from services.cli.exit_codes import ExitCode
from services.cli.failures import EndedBadly


@command
def ask(
    question: Annotated[str, typer.Argument(help="The question, in quotes.")],
    space: SpaceOption,
    model: Annotated[str | None, typer.Option(help="Chat model to answer with, if not the server's default.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Ask a space a question. The answer streams; its citations follow with page and quote.

    Into a pipe goes the finished answer only; --json prints the answer object. Exit code 3 when the run failed.
    """
    request: dict[str, Any] = {"question": question, "space": space}
    if model is not None:
        request["model"] = model
    with open_client(data_dir) as client:
        started = AnswerStarted.model_validate(client.send("POST", path_of("answers"), request))
        writing = answer_view.writing_for(as_json)
        draft = _follow(client, started, writing)
        reply = client.get(path_of("answers", started.answer_id))
    if as_json:
        output.print_json(reply)
    elif draft.end == "succeeded":
        shown = writing.shown if isinstance(writing, answer_view.PlainWriting) else ""
        answer_view.print_answer(AnswerView.model_validate(reply), draft.sources, already_shown=shown)
    if draft.end != "succeeded":
        raise _ended_badly(draft, started.run_id)


def _follow(client: ApiClient, started: AnswerStarted, writing: answer_view.Writing) -> AnswerDraft:
    draft = AnswerDraft()
    try:
        with writing:
            for event in follow_run(client, started.run_id):
                draft.apply(event)
                writing.changed(draft)
    except KeyboardInterrupt:
        output.say(
            f"Interrupted. The answer goes on in the server: `perdure runs watch {started.run_id}`, "
            f"or end it with `perdure runs cancel {started.run_id}`."
        )
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    return draft


def _ended_badly(draft: AnswerDraft, run_id: str) -> EndedBadly:
    if draft.error is None:
        return EndedBadly(f"The answer was {draft.end}.", str(draft.end))
    retry = "Ask again in a moment." if draft.error.get("retryable") else f"`perdure runs show {run_id}` has more."
    return EndedBadly(str(draft.error.get("detail")), str(draft.error.get("code")), retry)
