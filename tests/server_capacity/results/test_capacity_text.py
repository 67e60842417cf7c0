"""The answer of a capacity search in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from server_capacity.results.text.capacity import to_text
from server_capacity.results.text.headline import between, headline, rate_text
from server_capacity.results.types.bounds import Interval
from server_capacity.results.types.result_status import NOT_REMOVED, UNSAVED
from server_capacity.results.types.server_side import Memory, Side
from tests.capacities import as_read, found, searched, stretch
from tests.mentions import mentions

NOTHING: dict[str, Any] = {"rate": None, "interval": None, "limit": None}
CONFIRMED: dict[str, Any] = {"rate": 168.2, "seconds": 60.0, "limits": []}
MEETS = "Meets p99<100ms up to 174/s (95% interval: 168 to 180), Poisson arrivals"
HELD = {**CONFIRMED, "seconds": 20.0, "verdict": "holds"}
GAVE_IN = ((0.31, 0.2, 0.4), (0.184, 0.17, 0.2))
AT_LEAST = {"rate": 500.0, "reason": "--max-rps was reached"}


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({}, "Meets p99<100ms up to 174/s (95% interval: 168 to 180), Poisson arrivals"),
        ({"arrivals": "constant"}, "Meets p99<100ms up to 174/s (95% interval: 168 to 180), evenly spaced arrivals"),
        ({"limit": "keeps up"}, "Keeps up with 174/s (95% interval: 168 to 180), Poisson arrivals"),
        ({"cache": "warm"}, "Meets p99<100ms up to 174/s (95% interval: 168 to 180), Poisson arrivals, warm cache"),
        (
            {"confirmation": [{**CONFIRMED, "verdict": "fails"}, {**CONFIRMED, "verdict": "cannot_tell"}]},
            "Meets p99<100ms up to 174/s (95% interval: 168 to 180), Poisson arrivals, not confirmed",
        ),
        (
            {"confirmation": [{**CONFIRMED, "verdict": "fails"}]},
            f"{MEETS}, but a wave at the lower end failed",
        ),
        (
            {"confirmation": [{**CONFIRMED, "verdict": "cannot_tell", "spoilt": "schedule lag p99 12 ms"}]},
            f"{MEETS}, not confirmed: schedule lag p99 12 ms",
        ),
        (
            {"clean_up": "failed"},
            "Meets p99<100ms up to 174/s (95% interval: 168 to 180), Poisson arrivals. Something that was created for "
            f"it {NOT_REMOVED}",
        ),
        (
            {"suspended": {"put_back": False}},
            f"{MEETS}. Scaling that was suspended for it is not restored",
        ),
        (
            {"failures": ["The search ended early: the disk is full."], "ended": "early"},
            f"{MEETS}. The search ended early: the disk is full",
        ),
        (
            {"failures": [f"x: cannot be written (No space left on device). {UNSAVED}"]},
            f"{MEETS}. The results exist only in the printed text",
        ),
        ({"pending": True}, "PENDING: Meets p99<100ms up to 174/s (95% interval: 168 to 180), Poisson arrivals"),
        (
            {"in": "users", "rate": 1043, "interval": {"low": 1010, "high": 1080}, "users": {"think": "5 s"}},
            "Meets p99<100ms up to 1,043 users (95% interval: 1,010 to 1,080), think time 5 s",
        ),
        (
            {"outcome": "at_least", **NOTHING, "at_least": AT_LEAST},
            "At least 500/s, Poisson arrivals: --max-rps was reached",
        ),
        *(
            (
                {
                    "outcome": "at_least",
                    **NOTHING,
                    "at_least": AT_LEAST,
                    "confirmation": [{"rate": 500.0, "seconds": 9.0, "verdict": verdict, "limits": []}],
                },
                f"At least 500/s, Poisson arrivals: --max-rps was reached{said}",
            )
            for verdict, said in (
                ("holds", ""),
                ("cannot_tell", ", not confirmed"),
                ("fails", ", but a wave at that rate failed"),
            )
        ),
        (
            {"outcome": "client_limited", **NOTHING, "at_least": {"rate": 500.0, "reason": ""}},
            "At least 500/s, Poisson arrivals: the client was the limit",
        ),
        ({"outcome": "client_limited", **NOTHING, "reason": "lag"}, "The client was the limit: lag"),
        (
            {"outcome": "client_limited", **NOTHING, "reason": "lag", "failures": ["The search ended early: a loss."]},
            "The search ended early: a loss",
        ),
        ({"outcome": "not_kept", **NOTHING, "reason": "missed at 1/s"}, "No rate meets the limits: missed at 1/s"),
        ({"outcome": "cannot_tell", **NOTHING, "reason": "12 requests"}, "Inconclusive: 12 requests"),
        ({"outcome": "cannot_tell", **NOTHING}, "Inconclusive: there was too little to judge"),
        ({"outcome": "interrupted", **NOTHING}, "Interrupted before there was an answer"),
        (
            {"outcome": "interrupted"},
            "Interrupted; met p99<100ms up to 174/s (95%: 168 to 180), Poisson arrivals",
        ),
    ],
)
def test_the_first_line_is_the_answer(more: dict[str, Any], line: str) -> None:
    assert headline(searched(**more)) == line


@pytest.mark.parametrize(
    ("rate", "low", "high", "text"),
    [
        (174.13, 168.2, 179.9, "174/s"),
        (174.13, 173.0, 175.2, "174.1/s"),
        (0.2134, 0.19, 0.23, "0.213/s"),
        (18_432.7, 18_000, 18_900, "18,433/s"),
        (5.0, 5.0, 5.0, "5.00/s"),
        (None, 1, 2, "-"),
    ],
)
def test_a_rate_has_the_digits_that_its_interval_supports(
    rate: float | None, low: float, high: float, text: str
) -> None:
    assert rate_text(rate, Interval(low, high)) == text


def test_the_answer_stands_first_and_last_and_the_folder_below() -> None:
    lines = to_text(searched(), "x_capacity").splitlines()
    answer = lines[: lines.index("")]

    assert answer[0] == headline(searched())
    assert "Confirmed" in answer[1]
    assert lines[-3:] == ["", answer[0], "Folder: x_capacity"]


@pytest.mark.parametrize("outcome", ["found", "at_least", "not_kept", "cannot_tell", "client_limited", "interrupted"])
def test_nothing_is_wider_than_a_terminal(outcome: str) -> None:
    assert max(map(len, to_text(searched(outcome=outcome, at_least=AT_LEAST, reason="so")).splitlines())) <= 80


@pytest.mark.parametrize("key", sorted(set(found()) - {"outcome", "exit_code", "limits", "islands"}))
def test_what_is_not_known_is_left_out(key: str) -> None:
    reported = found(
        **({"rate": None, "interval": None, "outcome": "cannot_tell"} if key in ("rate", "interval") else {})
    )
    known = {name: value for name, value in reported.items() if name != key}

    assert to_text(as_read({**known, key: None})) == to_text(as_read(known))


def test_what_counts_for_nothing_says_why() -> None:
    stretches = [stretch(0, 50), stretch(7, 60, void="the client was the limit")]
    text = to_text(searched(stretches=stretches, load_s=150.0, void_s=22.0))
    assert mentions(text, "2 min", "30 s", "22 s")
    assert "of which" not in to_text(searched(stretches=stretches[:1], load_s=150.0, void_s=0.0))

    assert "✗ Step 2 was discarded because the client was the limit." in text


def test_of_many_stretches_the_longest_are_shown() -> None:
    text = to_text(searched(stretches=[stretch(n, 10, end_s=2.0 * n + 2 + (n == 99)) for n in range(100)]))

    assert "24 ramp up" in text
    assert mentions(text, "76", "capacity.json")


def test_values_at_the_lower_end_are_of_the_wave_that_reported_them() -> None:
    """A wave that fails lowers the interval; one that was spoilt tells nothing."""
    failed = {"rate": 171.0, "seconds": 20.0, "verdict": "fails", "limits": []}
    spoilt = {"rate": 160.0, "seconds": 20.0, "verdict": "cannot_tell", "spoilt": "schedule lag"}
    lines = to_text(searched(confirmation=[failed, spoilt])).splitlines()

    assert " at 171/s " in lines[2]
    assert mentions(lines, "171/s", "20 s")


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (1 - 2**-52, "more than 99.99%"),
        (0.97123456, "97.12%"),
        (1e-17, "less than 0.01%"),
    ],
)
def test_a_share_that_is_predicted_is_shown_to_a_hundredth_of_a_percent(share: float, text: str) -> None:
    windows = {"seconds": 60.0, "windows": 0, "kept": 0, "share": share, "interval": None}
    evidence = "This estimate allows for bursts of slow requests."
    line = f"At 168/s, the lower end of the interval, {text} of windows of 1 min meet p99<100ms. {evidence}"
    text = to_text(searched(windows=windows))
    assert line in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80


def test_a_share_that_was_counted_is_reported_as_it_is() -> None:
    windows = {"seconds": 60.0, "windows": 20_000, "kept": 19_999, "share": 19_999 / 20_000, "interval": None}
    text = " ".join(to_text(searched(windows=windows)).split())
    assert mentions(text, "99.995%", "1 min", "19999", "20000")


def test_a_soak_tells_whether_it_drifted_and_a_spoilt_wave_why() -> None:
    drift = {"first": 0.02, "last": 0.031, "clear": True}

    assert mentions(to_text(searched(soak={"seconds": 60.0, "drift": drift})), "20 ms", "31 ms")
    assert "did not drift" in to_text(searched(soak={"seconds": 60.0, "drift": {**drift, "clear": False}}))
    assert "drift" not in to_text(searched(soak={"seconds": 60.0, "drift": None}))
    wave = {"rate": 168.0, "seconds": 20.0, "verdict": "cannot_tell", "spoilt": "schedule lag p99 40 ms"}
    assert "inconclusive because this client was the limit" in to_text(searched(confirmation=[wave]))


@pytest.mark.parametrize(
    "lost", ["the primary process ended in the middle of the wave", "worker lost: 1 of 1 workers, 346 arrivals with it"]
)
def test_a_wave_whose_processes_ended_says_no_more_than_that(lost: str) -> None:
    wave = {"rate": 168.0, "seconds": 20.0, "verdict": "cannot_tell", "spoilt": lost, "spoilt_by": "client"}
    text = " ".join(to_text(searched(confirmation=[wave])).split())
    assert f"Tried at 168/s for 20 s, inconclusive: {lost}." in text
    assert "this client was the limit" not in text


def test_one_user_is_one() -> None:
    assert [rate_text(users, None, " users") for users in (1.0, 3.0, None)] == ["1 user", "3 users", "-"]
    assert between(Interval(1.0, 3.0), " users") == "1 to 3"
    assert rate_text(1.0) == "1.00/s"


@pytest.mark.parametrize(("share", "text"), [(1.0, "100%"), (0.9975, "99.8%"), (0.00072831, "0.0728%"), (0.0, "0%")])
def test_a_share_over_a_limit_has_three_digits(share: float, text: str) -> None:
    row = stretch(0, 400, share_over=[share, 0.0])

    assert f" {text} " in to_text(searched(stretches=[row]))


def test_what_requests_failed_with_is_reported() -> None:
    rows = [{"key": f"HTTPError 50{number}", "count": 1_000 - number} for number in range(7)]
    text = to_text(searched(errors=rows))

    assert mentions(text, "6,979 requests", "1,000 x", "HTTPError", "500", "999 x", "HTTPError", "501")
    assert "and 2 other errors." in text
    assert max(map(len, text.splitlines())) <= 80
    assert "failed" not in to_text(searched(errors=[]))


def test_a_cache_that_the_server_tells_of_has_a_table_of_its_own() -> None:
    fields = {"kv_cache_use": 0.4167, "preemptions": 8.95, "prefix_cache_hit_rate": 0.25, "other": 1.0}
    rows = [stretch(0, 10.0), stretch(1, 20.0, metrics=fields, tokens_per_s=1234.0), stretch(2, 0.0, metrics=fields)]
    lines = [" ".join(line.split()) for line in to_text(searched(stretches=rows)).splitlines()]

    place = lines.index("Step rate KV cache preempted/s prefix hits tokens/s")
    assert lines[place + 1 : place + 3] == ["2 ramp up 20.0 41.67% 8.95 25% 1,234", ""]
    assert not any("KV cache" in line for line in to_text(searched()).splitlines())


def test_a_limit_on_the_server_has_no_share_of_requests_that_miss_it() -> None:
    limits = [
        {"expression": "p99<100ms", "metric": "response_time", "rate": None},
        {"expression": "server.kv_cache_use<60%", "metric": "server.kv_cache_use", "rate": 120.0, "unit": "share"},
    ]
    text = to_text(searched(limits=limits, limit="server.kv_cache_use<60%"))

    assert "over: the share of requests beyond the limit of p99<100ms" in text


def test_there_is_one_capacity_and_the_model_is_for_who_asks() -> None:
    twin = {"fits": True, "rate": 172.8, "interval": {"low": 171.7, "high": 173.9}, "confirmed_at": 170.0}
    waves = [{"rate": 165.0, "seconds": 10.0, "verdict": "cannot_tell", "spoilt": "schedule lag"}, HELD]
    data = searched(twin=twin, confirmation=waves)
    lines = to_text(data).splitlines()
    assert lines[0] == MEETS
    assert lines[1].startswith("   Confirmed at 168/s for 20 s")
    assert lines[2] == "", "a wave that tells nothing stands below"
    assert "172.8" not in to_text(data)
    assert "172.8" in to_text(data, verbose=True)
    apart = searched(twin={**twin, "rate": 300.0, "interval": {"low": 290.0, "high": 310.0}}, confirmation=[HELD])
    assert "disagree. Plan with 168/s" in " ".join(to_text(apart).split())


def test_a_confirming_wave_that_is_invalid_on_its_own_says_so() -> None:
    late = {**HELD, "invalid": "schedule_lag p99 9.76 ms (limit 5 ms)"}
    text = " ".join(to_text(searched(confirmation=[late])).split())
    assert "A plain wave would be INVALID: schedule_lag p99 9.76 ms (limit 5 ms)" in text


def test_steps_are_numbered_without_gaps() -> None:
    rows = [stretch(0, 10), stretch(3, 0), stretch(4, 20, purpose="again"), stretch(9, 30, purpose="bisect")]
    lines = to_text(searched(stretches=rows)).splitlines()
    steps = [line.split()[:2] for line in lines if line[3:4].isdecimal()]
    assert steps == [["1", "ramp"], ["2", "repeat"], ["3", "bisect"]]


def test_a_search_for_sessions_is_in_their_unit_and_says_the_load_in_others() -> None:
    at = {"sessions_per_s": 1.68, "open_sessions": 24.2, "turns_per_s": 6.9, "input_tokens_per_s": 5200.0}
    at |= {"cached_tokens_per_s": 4100.0, "length_s": 14.4, "alone_s": 12.9}
    data = searched(**{"in": "sessions", "rate": 1.74, "interval": {"low": 1.68, "high": 1.8}, "sessions": at})
    lines = to_text(data).splitlines()
    assert "up to 1.74 sessions/s (95% interval: 1.68 to 1.80)" in lines[0]
    text = " ".join(" ".join(lines).split())
    assert "1.68 sessions/s, 24.2 sessions open at a time, 6.9 turns/s, 5,200 input tokens/s (4,100/s cached)." in text
    assert "14.4 s" in text
    assert "12.9 s" in text


@pytest.mark.parametrize(
    ("begun", "said"),
    [
        (3.6, "only 3.6 sessions/s began in the wave at the lower end"),
        (7.2, "7.2 sessions/s began in the wave at the lower end"),
        (4.4, ""),
        (None, ""),
    ],
)
def test_a_wave_that_began_clearly_more_or_fewer_sessions_than_its_rate_says_so(begun: float | None, said: str) -> None:
    """54 are expected: 36 and 72 are off by more than two standard deviations of Poisson arrivals, 44 are not."""
    at = {"sessions_per_s": 5.404, "turns_per_s": 10.8, "begun_per_s": begun}
    data = searched(**{"in": "sessions", "sessions": at, "confirmation": [{**HELD, "rate": 5.404, "seconds": 10.0}]})
    text = " ".join(to_text(data).split())
    assert mentions(text, f"Arrivals were random: {said}") if said else "Arrivals were random" not in text


def test_a_cache_that_gave_in_is_named_with_what_was_found_from_below_and_after_overload() -> None:
    below, above = ({"rate": rate, "interval": {"low": low, "high": high}} for rate, low, high in GAVE_IN)
    before = {"kv_cache_use": 0.4, "preemptions": 0.0, "prefix_cache_hit_rate": 0.65}
    after = {"kv_cache_use": 0.99, "preemptions": 0.5, "prefix_cache_hit_rate": 0.01}
    rows = [
        stretch(0, 0.2, metrics=before),
        stretch(1, 0.6, purpose="overload", metrics=after),
        stretch(2, 0.2, purpose="return", metrics=after),
        stretch(3, 0.17, purpose="return", metrics=before),
    ]
    more = {"in": "sessions", "rate": 0.184, "interval": {"low": 0.17, "high": 0.2}, "confirmation": [HELD]}
    data = searched(**more, stretches=rows, memory={"below": below, "above": above, "differ": True})
    after_overload = "after overload (met at 0.170, not at 0.200; from below up to 0.31 sessions/s)"
    assert f"up to 0.184 sessions/s {after_overload}, Poisson arrivals" in headline(data)
    text = " ".join(to_text(data).split())
    assert "From below the limits are met up to 0.31 sessions/s, after overload only at 0.170 sessions/s." in text
    assert "At 0.200 sessions/s after overload, 1% of prompt tokens were in the prefix cache (65% from below)" in text
    assert "99% of the KV cache was in use (40%); 0.5 requests/s were preempted (0)." in text
    assert mentions(text, "overload, return:", "without a pause")
    unknown = [replace(row, metrics=None) for row in data.stretches or []]
    assert "No metrics of the server" in to_text(replace(data, stretches=unknown))
    same = replace(data, memory=Memory(Side(0.2), Side(0.17), differ=False))
    assert "After overload every limit was met again at 0.170 sessions/s." in " ".join(to_text(same).split())
    assert "after overload" not in headline(same)
    refuted = replace(same, memory=Memory(Side(0.2), Side(interval=Interval(0.0, 0.17)), differ=False))
    said = "After overload the limits were met again, but a later wave at 0.170 sessions/s failed."
    assert said in " ".join(to_text(refuted).split())


def test_a_cache_that_gives_in_between_two_steps_is_named_though_the_endpoint_recovers() -> None:
    calm = {"kv_cache_use": 0.39, "preemptions": 0.0, "prefix_cache_hit_rate": 0.556}
    full = {"kv_cache_use": 0.98, "preemptions": 0.0, "prefix_cache_hit_rate": 0.015}
    rows = [
        stretch(0, 3.0, metrics=calm, tokens_per_s=300.0),
        stretch(1, 3.54, metrics=calm, tokens_per_s=350.0),
        stretch(2, 4.21, metrics=full, tokens_per_s=290.0, share_over=[0.657, 0.0]),
        stretch(3, 6.0, metrics=full, share_over=[0.9, 0.0]),
    ]
    limit = {"expression": "p95<100ms", "metric": "response_time", "allowed": 0.05, "rate": 3.6}
    more = {"in": "sessions", "limits": [limit], "memory": None}
    text = " ".join(to_text(searched(**more, stretches=rows)).split())
    assert "Between 3.54 sessions/s, where the limits were met, and 4.21 sessions/s, the cache gave in: " in text
    assert "1.5% of prompt tokens were in the prefix cache (55.6% before); 98% of the KV cache was in use (39%)" in text
    assert "290 tokens/s were generated (350 before)." in text
    unknown = to_text(searched(**more, stretches=[*rows[:2], rows[2] | {"tokens_per_s": None}, rows[3]]))
    assert "gave in" in unknown
    assert "tokens/s were generated" not in " ".join(unknown.split())
    steady = [{**row, "metrics": calm} for row in rows]
    always_full = [{**row, "metrics": {**full, "kv_cache_use": 0.97}} for row in rows]
    unread = [rows[0] | {"metrics": {"tokens": 1.0}}, rows[1] | {"metrics": {"tokens": 1.0}}, *rows[2:]]
    for others in (always_full, unread):
        assert "gave in" not in to_text(searched(**more, stretches=others))
    assert "gave in" not in to_text(searched(**more, stretches=steady))


def test_a_search_for_sessions_that_saw_no_return_from_overload_says_so() -> None:
    unseen = "The search did not see whether the endpoint recovers from overload."
    at = {"sessions_per_s": 3.4, "turns_per_s": 10.8}
    assert unseen in " ".join(to_text(searched(**{"in": "sessions", "sessions": at, "memory": None})).split())
    assert unseen not in " ".join(to_text(searched(memory=None)).split())


def test_tokens_at_the_answer_have_those_of_prompts() -> None:
    each = {"requests": 90, "input": 200.0, "cached": 50.0, "output": 30.0}
    tokens = {"tokens_per_s": 120.0, "requests_per_s": 4.0, "per_request": each}
    text = to_text(searched(tokens=tokens))
    assert "At the answer: 120 tokens/s in 4 requests/s; 800 input tokens/s (200/s cached)." in " ".join(text.split())


def test_a_return_that_was_cut_off_is_not_said_to_have_missed_its_limits() -> None:
    rows = [stretch(0, 0.2), *(stretch(number, rate, purpose="return") for number, rate in ((1, 0.2), (2, 0.17)))]
    memory = {"below": {"rate": 0.31, "interval": {"low": 0.3, "high": 0.32}}, "differ": True}
    more = {"in": "sessions", "outcome": "interrupted", "rate": None, "interval": None, "stretches": rows}
    for above, last in (({"interval": {"low": 0.0, "high": 0.2}}, "0.200"), ({}, "0.170")):  # {}: an earlier version
        text = " ".join(to_text(searched(**more, memory={**memory, "above": above})).split())
        assert f"after overload they were not met again at {last} sessions/s and above." in text


def test_steps_that_were_sent_for_another_tier_say_so() -> None:
    steps = [stretch(0, 50.0, wave="a"), stretch(1, 60.0, purpose="shared", wave="a"), stretch(2, 174.13, wave="b")]
    text = to_text(searched(stretches=steps, waves={"exploration": ["b"], "shared": ["a"]}, shared_s=4.0))
    assert "shared: a rate near the answer of an earlier tier" in text
    assert "Steps 1 to 2 were sent for earlier tiers." in text
    assert "Of its load, 4.0 s were sent for earlier tiers" in text
    less = searched(stretches=steps, waves={"shared": ["a"]}, shared_s=4.0, shared_void_s=1.0)
    assert "Of its load, 3.0 s were sent for earlier tiers, and judged" in to_text(less)
    assert "earlier tiers" not in to_text(searched(stretches=steps, waves={"exploration": ["a", "b"]}))
