"""The fixed answer when the documents hold no evidence: no figures, no guesses, no citations, `answered` = false."""

from __future__ import annotations

from services.answers.question_language import Language, question_language

NOT_IN_THE_DOCUMENTS: dict[Language, str] = {
    "en": "This is not in the documents you can read here, so there is no answer.",
    "zh": "在您可以查看的文档中没有找到相关内容，因此无法回答。",
}


def no_evidence_text(question: str) -> str:
    return NOT_IN_THE_DOCUMENTS[question_language(question)]
