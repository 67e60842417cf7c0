"""Lambda's Invoke, as boto3's ``lambda`` client reads it: a function that waits for its turn like any other request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.data.json_text import parse_json
from inference_benchmarker.embedded.http.messages import Answer, HttpError, json_answer

if TYPE_CHECKING:
    from inference_benchmarker.embedded.http.messages import Request


class LambdaDialect:
    """One function, whatever it is called, which gives the same prediction for every event."""

    _TOO_MANY = (429, 503)

    def reply(self, request: Request, sequence: int) -> Answer:
        """The answer that the function returned."""
        if request.body:
            self._check(request.body)
        return json_answer(200, {"predictions": [0.5]}, self._headers(sequence))

    def failure(self, status: int, reason: str, sequence: int) -> Answer:
        """Too many at once and a wrong request are Lambda's errors; else the function raised, which is answered 200."""
        if status in self._TOO_MANY:
            content = {"Reason": "ConcurrentInvocationLimitExceeded", "Type": "User", "message": "Rate Exceeded."}
            return self._error(429, "TooManyRequestsException", content, sequence)
        if status == 400:
            return self._error(400, "InvalidRequestContentException", {"Type": "User", "message": reason}, sequence)
        raised = {"errorMessage": reason, "errorType": "RuntimeError", "requestId": self._id(sequence)}
        return json_answer(200, raised, {"X-Amz-Function-Error": "Unhandled", **self._headers(sequence)})

    def _error(self, status: int, code: str, content: dict[str, str], sequence: int) -> Answer:
        return json_answer(status, content, {"x-amzn-ErrorType": code, "x-amzn-RequestId": self._id(sequence)})

    def _headers(self, sequence: int) -> dict[str, str]:
        return {"X-Amz-Executed-Version": "$LATEST", "x-amzn-RequestId": self._id(sequence)}

    @staticmethod
    def _check(body: bytes) -> None:
        try:
            parse_json(body)
        except ValueError as error:
            raise HttpError(400, f"Could not parse request body into json: {error}") from error

    @staticmethod
    def _id(sequence: int) -> str:
        return f"00000000-0000-4000-8000-{sequence:012x}"
