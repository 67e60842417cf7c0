"""The log of the embedded endpoint: what becomes known of an arrival joins its own row."""

from inference_benchmarker.embedded.http.messages import Request
from inference_benchmarker.embedded.log import ArrivalLog


def opened(log: ArrivalLog, at_ns: int) -> int:
    number = log.next_sequence
    log.open("/invocations", Request("POST", "/", "", "HTTP/1.1", {}, at_ns, at_ns + 1), 1, "demo")
    return number


def test_what_becomes_known_joins_the_row_of_its_arrival() -> None:
    log = ArrivalLog()
    first, second = opened(log, 10), opened(log, 20)
    log.serve(second, 22, 25)
    log.close(second, 200, 26)
    log.serve(first, None, None)
    found = log.columns()
    assert (found["start_ns"], found["finish_ns"]) == ([None, 22], [None, 25])
    assert (found["answered_ns"], found["status"]) == ([None, 26], [None, 200])
    assert found["queued_ns"] == [11, 21]


def test_a_request_that_was_on_its_way_when_the_log_was_cleared_joins_no_other_row() -> None:
    log = ArrivalLog()
    before = opened(log, 10)
    log.clear()
    after = opened(log, 20)
    log.serve(before, 12, 15)
    log.close(before, 200, 16)
    found = log.columns()
    assert found["sequence"] == [after]
    assert (found["start_ns"], found["status"]) == ([None], [None])
