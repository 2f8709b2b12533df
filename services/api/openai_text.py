"""Text that was sent to a client of a protocol that cannot take any of it back."""

from __future__ import annotations

import regex

from schemas.errors import Problem
from services.retrieval.citations import UNSUPPORTED_MARK, UNSUPPORTED_MARK_CHINESE

NOTE_CHARS = 100
_MARKS = (UNSUPPORTED_MARK, UNSUPPORTED_MARK_CHINESE)
_MARKED = regex.compile("|".join(regex.escape(mark) for mark in _MARKS))
_CLAIM = regex.compile(r"[^\n]+\Z")


class TextReplaced(Problem):
    """What was sent is not what stands: the client can only ask again."""

    status, type, title = 503, "text_replaced", "The text was begun again"


class SentText:
    """Keeps what was sent equal to a beginning of what stands.

    When the text is begun again (`answer.reset`), nothing is sent until it has come past what was sent: a model that says the
    same goes on unnoticed. One that says something else is TextReplaced.
    """

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._sent = ""
        self._now = ""

    def add(self, text: str) -> str:
        """The piece to send."""
        self._now += text
        return self._rest_of(self._now)

    def begin_again(self) -> None:
        self._now = ""

    def finish(self, final: str) -> tuple[str, list[str]]:
        """The last piece to send, and the claims whose marks came too late for the text that was sent."""
        claims: list[str] = []
        if not final.startswith(self._sent):
            claims = unsupported_claims(final)
            final, self._sent = _MARKED.sub("", final), _MARKED.sub("", self._sent)
        if not final.startswith(self._sent.rstrip()):
            raise self._replaced()
        rest, self._sent = final[len(self._sent) :], final
        return rest, claims

    def _rest_of(self, text: str) -> str:
        if text.startswith(self._sent):
            rest, self._sent = text[len(self._sent) :], text
            return rest
        if self._sent.startswith(text):
            return ""
        raise self._replaced()

    def _replaced(self) -> TextReplaced:
        return TextReplaced(
            "The model was interrupted and said something else when it was asked again; what was sent cannot be taken back "
            f"here. Forget it, and read the whole of it with GET /v1/responses/resp_{self._run_id}, or send the request again."
        )


def unsupported_claims(text: str) -> list[str]:
    """The end of each passage of text that stands before a mark for unsupported."""
    found: list[str] = []
    place = 0
    for mark in _MARKED.finditer(text):
        claim = _CLAIM.search(_MARKED.sub("", text[place : mark.start()]))
        place = mark.end()
        if claim is not None:
            said = claim.group().strip()
            found.append(said if len(said) <= NOTE_CHARS else f"…{said[-NOTE_CHARS:]}")
    return found
