"""Reranking: as TEI answers it (``texts``), and as Jina, Cohere and vLLM do (``documents``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.embedded.http.messages import HttpError, json_answer
from inference_benchmarker.embedded.protocols.chat import OpenAiDialect
from inference_benchmarker.embedded.protocols.completions import texts_of, words
from inference_benchmarker.embedded.protocols.dialects import MODEL, json_object

if TYPE_CHECKING:
    from inference_benchmarker.embedded.http.messages import Answer, Request


class RerankDialect(OpenAiDialect):
    """Scores by a text's place alone, the best first."""

    def reply(self, request: Request, sequence: int) -> Answer:
        """A score for each text."""
        asked = json_object(request.body)
        query = asked.get("query")
        if not isinstance(query, str) or not query:
            raise HttpError(400, "the body needs query: a text that is not empty")
        if "texts" in asked:
            texts = texts_of(asked, "texts")
            return json_answer(200, [{"index": index, "score": score} for index, score in _scores(texts)])
        texts = texts_of(asked, "documents")
        results = [
            {"index": index, "document": {"text": texts[index]}, "relevance_score": score}
            for index, score in _scores(texts)
        ]
        tokens = len(texts) * words([query]) + words(texts)  # the model reads the query with each of them
        fields = {"id": f"rerank-{sequence}", "model": str(asked.get("model", MODEL))}
        return json_answer(200, {**fields, "usage": {"total_tokens": tokens}, "results": results})


def _scores(texts: list[str]) -> list[tuple[int, float]]:
    return [(index, 1 / (index + 1)) for index in range(len(texts))]
