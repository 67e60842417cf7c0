"""Files of conversations, each of their formats: their turns, what is left out, and what is sent of them."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import re
import tracemalloc
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.engine.launch import resolve
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.recorded import Conversations, Recorded
from inference_benchmarker.plan.replay import Replay
from inference_benchmarker.recording.conversations import conversation_file, grouping, objects
from inference_benchmarker.recording.conversations.formats import format_of
from inference_benchmarker.recording.conversations.left_out import LeftOut
from inference_benchmarker.recording.conversations.prompts import RecordedConversation
from inference_benchmarker.recording.conversations.reading import are_in, read_conversations, replayed
from inference_benchmarker.recording.formats import opened_source, opened_text
from inference_benchmarker.recording.rows import RowFile
from inference_benchmarker.system.packaged import packaged
from inference_benchmarker.system.progress import listening
from inference_benchmarker.words.units import NS
from tests.recordings import dues_of
from tests.waves import open_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GPT = [
    {"id": "a", "conversations": [{"from": "human", "value": 'Hi "{"'}, {"from": "gpt", "value": "x" * 400}]},
    {
        "id": "b",
        "conversations": [
            {"from": "system", "value": "Be brief."},
            {"from": "human", "value": "one"},
            {"from": "gpt", "value": "1"},
            {"from": "human", "value": "two"},
        ],
    },
]
CALL = {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": "{}"}}]}
TOOLS = {"messages": [{"role": "user", "content": "go"}, CALL, {"role": "tool", "content": "7", "tool_call_id": "c1"}]}
AGENT = {
    "id": "s",
    "block_size": 64,
    "requests": [
        {"t": 0, "type": "s", "in": 130, "out": 5, "hash_ids": [1, 2], "api_time": 1.5},
        {"t": 4, "type": "s", "in": 200, "out": 6, "hash_ids": [1, 2, 3], "api_time": 1, "think_time": 2.5},
        {"type": "subagent", "requests": []},
        {"t": 9, "type": "n", "in": 70, "out": 7, "hash_ids": [9]},
    ],
}
BURST = """Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
5,a,2,ChatGPT,100,10,110,Conversation log
6,,1,GPT-4,7,3,10,API log
25,a,1,ChatGPT,150,20,170,Conversation log
30,b,1,ChatGPT,5,0,5,Conversation log
31,c
"""


def lines(*rows: Any) -> str:
    return "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in rows)


def mooncake(at: int, tokens: int, ids: list[int], **more: Any) -> dict[str, Any]:
    return {"timestamp": at, "input_length": tokens, "output_length": 4, "hash_ids": ids, **more}


def found(folder: Path, content: str | bytes, most: int | None = None) -> tuple[Recorded, list[dict[str, Any]]]:
    file = folder / "talks"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    read = read_conversations(Conversations(file), most, folder / "out")
    assert read.recorded is not None
    rows = RowFile(read.rows.folder)
    return read.recorded, [rows.row(number) for number in range(read.recorded.conversations)]


def said(row: dict[str, Any], *answers: str, live: bool = True) -> list[list[dict[str, Any]]]:
    """The messages of each turn, where the model says this."""
    talk, reported = RecordedConversation(row, live=live), iter(answers)
    sent = []
    for turn in talk:
        sent.append(turn.messages)
        talk.hear(next(reported, "?"))
    return sent


@pytest.mark.parametrize("shape", ["array", "indented array", "lines", "objects"])
def test_share_gpt_in_any_shape(tmp_path: Path, shape: str) -> None:
    content = {
        "array": json.dumps(GPT),
        "indented array": json.dumps(GPT, indent=2),
        "lines": lines(*GPT),
        "objects": "".join(json.dumps(each, indent=1) for each in GPT),
    }[shape]
    facts, rows = found(tmp_path, content)
    assert (facts.format, facts.conversations, facts.turns, facts.left_out) == ("ShareGPT", 2, 3, 0)
    assert rows[0]["turns"][0]["out"] == 100
    assert said(rows[1], "eins") == [
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "one"}],
        [
            *({"role": "system", "content": "Be brief."}, {"role": "user", "content": "one"}),
            *({"role": "assistant", "content": "eins"}, {"role": "user", "content": "two"}),
        ],
    ]
    assert said(rows[1], "eins", live=False)[1][2]["content"] == "1"


def test_a_salt_stands_before_all_that_is_said(tmp_path: Path) -> None:
    _, (row,) = found(tmp_path, lines(TOOLS))
    sent = [turn.messages[0]["content"] for turn in RecordedConversation(row, salt="new")]
    assert sent == ["new go", "new go"]


def test_messages_keep_the_calls_that_tools_answered(tmp_path: Path) -> None:
    facts, (row,) = found(tmp_path, lines(TOOLS))
    assert (facts.format, facts.turns) == ("OpenAI messages", 2)
    assert said(row, "live words")[1] == TOOLS["messages"]


def test_agents_prompts_share_just_the_blocks_that_they_shared(tmp_path: Path) -> None:
    facts, rows = found(tmp_path, lines(AGENT, AGENT))
    assert facts.turns == 6
    turns = rows[0]["turns"]
    assert [(turn.get("think_s"), turn["out"]) for turn in turns] == [(None, 5), (2.5, 6), (4, 7)]
    first, second, third = [messages[0]["content"].split() for messages in said(rows[0])]
    assert [len(words) for words in (first, second, third)] == [130, 200, 70]
    assert first[:128] == second[:128]
    assert first[128:130] != second[128:130]
    assert third[:16] != first[:16]
    (other, *_) = said(rows[1])
    assert other[0]["content"].split()[:16] != first[:16], "blocks are a conversation's own"
    assert facts.reuse == pytest.approx(128 / 400), "only its second prompt repeats blocks"


def test_mooncakes_rows_are_requests_or_turns_of_sessions(tmp_path: Path) -> None:
    facts, rows = found(tmp_path, lines(mooncake(0, 600, [1, 2]), mooncake(5, 1030, [1, 2, 3]), mooncake(9, 10, [8])))
    assert (facts.format, facts.conversations, facts.block_tokens) == ("Mooncake's trace", 3, 512)
    texts = [said(row)[0][0]["content"].split() for row in rows]
    assert texts[0] == texts[1][:600]
    assert texts[1][1024:] != texts[2][:6]
    assert facts.reuse == pytest.approx((1024) / 1640)
    content = lines(
        mooncake(100, 600, [1, 2], session_id="a"),
        mooncake(50, 512, [1], session_id="b"),
        {"session_id": "a", "delay": 250, "input_length": 20, "output_length": 9},
        mooncake(7000, 1200, [1, 4, 5], session_id="b"),
    )
    facts, rows = found(tmp_path, content)
    assert [row["id"] for row in rows] == ["b", "a"], "by their first instants"
    assert [turn.get("think_s") for row in rows for turn in row["turns"]] == [None, 6.95, None, 0.25]
    assert "answers took" in facts.note
    whole, added = (said(row, "so it goes") for row in rows)
    assert [len(messages) for messages in (*whole, *added)] == [1, 1, 1, 3]
    assert whole[1][0]["content"].startswith(whole[0][0]["content"])
    assert added[1][1] == {"role": "assistant", "content": "so it goes"}
    assert len(added[1][2]["content"].split()) == 20


def test_a_session_of_texts_and_of_lengths_is_left_out(tmp_path: Path) -> None:
    text, length = {"session_id": "a", "text_input": "hi"}, {"session_id": "a", "input_length": 5, "hash_ids": [1]}
    talk = {"session_id": "a", "messages": [{"role": "user", "content": "hi"}]}
    for mixed in ((text, length), (length, text), (talk, length, talk), (length, talk)):
        facts, rows = found(tmp_path, lines({**text, "session_id": "b"}, *mixed))
        assert ([row["id"] for row in rows], facts.left_out) == (["b"], 1)
        assert facts.first_left_out == "line 2: some turns of its session are texts, and others are lengths"
    assert len(found(tmp_path, lines(text, talk, text))[1][0]["turns"]) == 3


def test_tables_have_the_turns_of_a_session_or_single_ones(tmp_path: Path) -> None:
    facts, rows = found(tmp_path, BURST)
    assert (facts.format, facts.conversations, facts.turns, facts.left_out) == ("BurstGPT", 2, 3, 2)
    first = list(RecordedConversation(rows[0]))
    assert [(turn.output_tokens, turn.think_s) for turn in first] == [(10, None), (20, 18.0)]
    assert len(said(rows[0])[1][-1]["content"].split()) == 150 - 100 - 10
    azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,48,10\nnonsense,3,4\n"
    facts, rows = found(tmp_path, azure)
    assert (facts.conversations, facts.left_out) == (1, 1)
    assert "line 3" in facts.first_left_out


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("7,a,1,m,ten,10,20,log", "'ten' is not a number of tokens"),
        ("7,a,1,m,10,2.5,20,log", "'2.5' is not a number of tokens"),
        ("7,a,soon,m,10,10,20,log", "'soon' is not a time in seconds"),
    ],
)
def test_a_left_out_row_of_a_table_says_what_was_expected(tmp_path: Path, row: str, said: str) -> None:
    facts, _ = found(tmp_path, f"{BURST}{row}\n")
    only = found(tmp_path, "\n".join([*BURST.splitlines()[:2], row]))[0]
    assert (facts.left_out, only.first_left_out) == (3, f"line 3: {said}")


def test_what_holds_no_conversation_is_counted_and_never_ends_it(tmp_path: Path) -> None:
    bad = [
        "{",
        "null",
        "[]",
        '"text"',
        '{"messages": 3}',
        '{"messages": []}',
        '{"messages": [{"role": 1}]}',
        "\0",
        "{}",
    ]
    bad += ['{"messages": [{"role": "assistant", "content": "a"}]}', '{"a":' * 5000, '{"messages": null}']
    good = {"messages": [{"role": "user", "content": "q"}]}
    facts, rows = found(tmp_path, lines(good, *bad, "", good))
    assert (facts.conversations, facts.left_out) == (2, len(bad))
    assert facts.first_left_out.startswith("line 2: ")
    assert facts.lacking.startswith("12 lines without a conversation were left out, the first is line 2")
    assert len(rows) == 2


def test_any_damage_is_left_out(tmp_path: Path) -> None:
    """Whatever is cut out of a file or put into it, it is read to its end or refused in a sentence."""
    read = refused = 0
    chosen = random.Random(5)
    whole = [json.dumps(GPT), lines(*GPT), lines(TOOLS, TOOLS), lines(AGENT), BURST]
    whole.append(lines(*(mooncake(9 * at, 600, [1, at], session_id=at % 2) for at in range(4))))
    for number in range(90):
        text = whole[number % len(whole)]
        at = chosen.randrange(len(text))
        put = chosen.choice(["", "\n", '"', "{", "]", "9" * 30, "\ud800".encode("utf-8", "replace").decode(), "é"])
        text = text[:at] + put + text[at + chosen.choice([0, 1, 40]) :]
        try:
            facts, rows = found(tmp_path, text)
        except BenchmarkError:  # any other error fails the test
            refused += 1
        else:
            read += 1
            assert facts.conversations == len(rows)
            assert all(map(said, rows))
    assert read > refused > 0


def test_half_a_character_is_sent_as_unknown_and_a_whole_one_as_it_is(tmp_path: Path) -> None:
    half, whole, reported = "a \ud83d", "\U0001f600", r"\ud800"
    asked = {"role": "user", "content": f"{half} {whole} {reported}", half: [half]}
    called = {"messages": [asked], "tools": [{half: half}]}
    _, (row,) = found(tmp_path, lines(called))
    ((message,),) = said(row)
    assert message == {"role": "user", "content": f"a \ufffd {whole} {reported}", "a \ufffd": ["a \ufffd"]}
    assert row["tools"] == [{"a \ufffd": "a \ufffd"}]
    facts, (row,) = found(tmp_path, lines(mooncake(1, 3, [], session_id=half), mooncake(2, 3, [], session_id=half)))
    assert (row["id"], facts.turns) == ("a \ufffd", 2)
    facts, _ = found(tmp_path, lines({half: 1}, called, {"messages": [{"role": "user"}], half: half}))
    assert (facts.conversations, facts.left_out) == (2, 1)
    facts, _ = found(tmp_path, lines({"conversations": [{"from": half, "value": "a"}]}, GPT[0]))
    assert (facts.conversations, facts.left_out) == (1, 1)


def test_an_instant_beyond_any_clock_is_left_out(tmp_path: Path) -> None:
    """Also where the turns of a conversation are rows, which are put in order by it."""
    for far in (10**16, -(10**16), 9 * 10**18, 9e18):
        for more in ({}, {"session_id": "a"}):
            rows = [mooncake(5, 3, [], **more), mooncake(far, 3, [], **more)]  # type: ignore[arg-type]
            facts, _ = found(tmp_path, lines(*rows))
            assert (facts.turns, facts.left_out) == (1, 1), (far, more)
            assert "is not a time" in facts.first_left_out
            file = tmp_path / "talks"
            read, _ = replayed(Conversations(file), Replay(file), 1, None, tmp_path / "out")
            assert read.recorded is not None
            assert (read.recorded.turns, read.recorded.left_out) == (1, 1)


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "{}\n", "[1, 2]", "PAR1", gzip.compress(b"{}")[:-5]])
def test_a_file_without_any_is_refused(tmp_path: Path, content: str | bytes) -> None:
    with pytest.raises(BenchmarkError, match=r"talks: (holds no conversation|is parquet|cannot be read)"):
        found(tmp_path, content)
    assert not are_in(tmp_path / "talks")
    assert not list((tmp_path / "out").glob(".replay_*"))


def test_a_replay_begins_each_when_it_began(tmp_path: Path) -> None:
    file = tmp_path / "trace"
    rows = [mooncake(1000 * at, 600, [1, at], session_id=at // 2) for at in (4, 5, 0, 1, 2, 3)]
    file.write_text(lines(*rows, {"session_id": "none", "input_length": 3}), encoding="utf-8")
    read, replay = replayed(Conversations(file), Replay(file, speed=Decimal(2)), 1, None, tmp_path / "out")
    assert dues_of(replay) == [0, NS, 2 * NS]
    assert read.recorded is not None
    assert (read.recorded.conversations, read.recorded.left_out) == (3, 1)
    kept = RowFile(replay.schedule.kept.folder)  # type: ignore[union-attr]
    assert [kept.row(number)["id"] for number in (0, 1, 2, 3)] == ["0", "1", "2", "0"], "then the first again"
    file.write_text(lines(*GPT), encoding="utf-8")
    with pytest.raises(BenchmarkError, match="do not say when they began"):
        replayed(Conversations(file), Replay(file), 1, None, tmp_path / "out")


def test_the_reuse_is_that_of_every_block_before_it_by_brute_force(tmp_path: Path) -> None:
    """Sessions that share a beginning, grow, are cut short, and say things apart; with numbers of any size."""
    chosen, at = random.Random(4), 0
    rows: list[dict[str, Any]] = []
    talks: list[list[tuple[int, list[int]]]] = []
    for number in range(60):
        blocks = [*range(chosen.choice([1, 1, 2]), 4), 1000 * number + 10**19 * (number % 3), 1000 * number + 1]
        talk = []
        for turn in range(chosen.randint(1, 5)):
            at += 1
            rows.append(mooncake(at, 512 * len(blocks) - 9, blocks, session_id=f"s{number}"))
            talk.append((512 * len(blocks) - 9, blocks))
            kept = blocks[: chosen.choice([len(blocks), len(blocks) - 1])]
            new = [1000 * number + 10 * turn + each for each in range(2, 2 + chosen.randint(0, 3))]
            blocks = [1000 * number + 999] if chosen.random() < 0.1 else kept + new
        talks.append(talk)
    seen: set[int] = set()
    tokens = known = 0
    for talk in talks:
        before: list[int] = []
        for length, blocks in talk:
            if not before or before[:1] == blocks[:1]:  # else the turn only adds to the one before
                first_new = next((place for place, each in enumerate(blocks) if each not in seen), len(blocks))
                tokens, known = tokens + length, known + min(512 * first_new, length - 1)
                seen.update(blocks)
            before = blocks
    facts, kept_rows = found(tmp_path, lines(*rows))
    assert facts.reuse == pytest.approx(known / tokens)
    sent = [turn for row in kept_rows for turn in row["turns"]]
    assert {each for turn in sent for each in turn["blocks"]} == {each for talk in talks for _, b in talk for each in b}


@pytest.mark.parametrize(("window", "most", "reuse"), [("", 2, 0.0), ("+1s..+2.5s", None, 1 / 3), ("", None, 1 / 2)])
def test_the_facts_of_a_part_are_those_of_the_conversations_that_it_sends(
    tmp_path: Path, window: str, most: int | None, reuse: float
) -> None:
    """Two turns each. The second one of the first two has blocks of its own, which it adds; the others repeat all."""
    file = tmp_path / "trace"
    ids = [[1, 2], [3, 4], [3, 4], [3, 4]]
    rows = [mooncake(1000 * at + turn, 1024, each, session_id=at) for at, each in enumerate(ids) for turn in (0, 1)]
    for row in rows[:2]:
        row["hash_ids"] = [5 + row["timestamp"] % 2, 9]
    for row in rows[2:4]:
        row["hash_ids"] = [7 + row["timestamp"] % 2, 9]
    file.write_text(lines(*rows), encoding="utf-8")
    read, replay = replayed(Conversations(file), Replay(file, window=window), 1, most, tmp_path / "out")
    assert read.recorded is not None
    assert replay.recording is not None
    assert read.recorded.conversations == replay.recording.rows
    assert read.recorded.turns == 2 * replay.recording.rows
    assert read.recorded.reuse == pytest.approx(reuse, abs=0.01)


def test_only_as_many_as_are_sent_are_read(tmp_path: Path) -> None:
    facts, rows = found(tmp_path, lines(*GPT * 500), most=3)
    assert (facts.conversations, len(rows)) == (3, 3)


@pytest.mark.parametrize("packed", [False, True])
def test_who_listens_is_reported_how_far_it_is_read(tmp_path: Path, packed: bool) -> None:
    chosen = random.Random(1)
    content = lines(*(mooncake(0, 9000, chosen.choices(range(1 << 60), k=18)) for _ in range(3000))).encode()
    reported: list[tuple[str, int, int]] = []
    with listening(lambda *each: reported.append(each)):
        found(tmp_path, gzip.compress(content) if packed else content)
    assert len({what for what, _, _ in reported}) == 1
    assert reported[-1][1] == reported[-1][2]
    shares = [done / of for _, done, of in reported[:-1]]
    assert len(shares) >= 3
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.5 < shares[-1] < 1


def test_who_listens_is_reported_how_far_sessions_are_put_together(tmp_path: Path) -> None:
    reported: list[tuple[str, int, int]] = []
    with listening(lambda *each: reported.append(each)):
        found(tmp_path, lines(*(mooncake(n, 600, [1, 2], session_id=f"s{n % 1500}") for n in range(2000))))
    assert reported[-4:-1] == [("Putting its sessions together", done, 1500) for done in (0, 1000, 1500)]


def test_a_long_object_is_left_out_and_what_follows_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "MOST_CHARACTERS", 1 << 16)
    monkeypatch.setattr(objects, "_PIECE", 1 << 12)
    long = {"conversations": [{"from": "human", "value": "a" * (1 << 17)}]}
    facts, _ = found(tmp_path, json.dumps([GPT[0], long, *[GPT[1]] * 2_000]))
    assert facts.left_out == 1
    assert facts.conversations == 2_001
    facts, _ = found(tmp_path, lines(GPT[0], long, GPT[1]))
    assert (facts.left_out, re.findall(r"line \d", facts.first_left_out)) == (1, ["line 2"])


@pytest.mark.parametrize("beginning", ["", "{", "["])
def test_a_line_without_an_end_is_not_read_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beginning: str
) -> None:
    for name, value in (("MOST_CHARACTERS", 1 << 16), ("_PIECE", 1 << 12), ("_MOST_PASSED", 1 << 18)):
        monkeypatch.setattr(objects, name, value)
    text = io.StringIO(beginning + "0" * (1 << 20) + "\n")
    with pytest.raises(OSError, match="262,144 characters"):
        format_of(text, LeftOut())
    assert text.tell() < 1 << 19


@pytest.mark.parametrize("opened", [opened_text, opened_source])
def test_a_pipe_or_a_device_is_no_recording(tmp_path: Path, opened: Callable[[Path], Any]) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name, kind in (("pipe", "a named pipe"), ("zero", "a device")):
        with pytest.raises(BenchmarkError, match=f"cannot be read .is {kind}, not a file"), opened(tmp_path / name):
            pass


def test_a_conversation_that_memory_need_not_hold_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (objects, grouping):
        monkeypatch.setattr(module, "MOST_HELD", 1 << 16)
    good = {"messages": [{"role": "user", "content": "q"}]}
    short = {"messages": [{"role": "user", "content": [{}] * 2_000}]}  # 8 kB, of which Python makes 144 kB
    facts, _ = found(tmp_path, lines(good, short, good))
    assert (facts.conversations, facts.left_out) == (2, 1)
    assert facts.first_left_out.startswith("line 2: would take more than")
    turns = [{"session_id": "a", "text_input": "x" * 20_000} for _ in range(4)]
    facts, rows = found(tmp_path, lines({**turns[0], "session_id": "b"}, *turns))
    assert ([row["id"] for row in rows], facts.left_out) == (["b"], 1)
    assert facts.first_left_out.startswith("line 2: its session would take more than")
    monkeypatch.setattr(conversation_file, "_MOST_KEPT", 30_000)
    facts, rows = found(tmp_path, lines(*turns[:2], {**turns[0], "session_id": "b"}))
    assert ([row["id"] for row in rows], facts.turns) == (["b"], 1)
    assert facts.first_left_out.startswith("line 1: its turns add more than 30,000 characters")


@pytest.mark.parametrize("more", [{}, {"session_id": 0, "output_length": 1}])
def test_memory_does_not_grow_with_the_rows_of_a_file(tmp_path: Path, more: dict[str, Any]) -> None:
    rows = [{"messages": [{"role": "user", "content": "x" * (1 << 20)}], **more} for _ in range(60)]
    content = lines(*({**row, "session_id": at} if more else row for at, row in enumerate(rows)))
    (tmp_path / "talks").write_text(content)
    del content
    (tmp_path / "short").write_text(lines({**rows[0], "messages": [{"role": "user", "content": "x"}]}))
    read_conversations(Conversations(tmp_path / "short"), None, tmp_path / "first")  # what is loaded for it is no row's
    tracemalloc.start()
    try:
        read_conversations(Conversations(tmp_path / "talks"), None, tmp_path / "out")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 << 20


def test_blocks_begin_unlike_any_other() -> None:
    rows = [
        {"id": "x", "number": owner, "own_blocks": True, "block_tokens": 16, "turns": [
            {"keep": 0, "blocks": [block], "tokens": 16}]}
        for owner in range(40) for block in (0, 1, 94, 95, 94**5, 94**6, -1)
    ]  # fmt: skip
    texts = {next(iter(RecordedConversation(row))).messages[0]["content"] for row in rows}
    assert len(texts) == len(rows)
    assert all(len(text.split()) == 16 for text in islice(texts, 9))


@pytest.mark.parametrize(("more", "read"), [({}, 20), ({"warmup_s": Decimal(1)}, 30)])
def test_of_a_long_file_only_the_conversations_that_the_wave_sends_are_read(
    tmp_path: Path, more: dict[str, Any], read: int
) -> None:
    file = tmp_path / "talks.jsonl"
    file.write_text(lines(*({"messages": [{"role": "user", "content": str(number)}]} for number in range(100))))
    example = packaged("factories", "conversations/factories_recorded.py")
    plan = open_plan(
        "10", "2", factories_file=example, conversations=Conversations(file), output_dir=tmp_path / "out", **more
    )
    found = resolve(plan).conversations
    assert found is not None
    assert found.recorded is not None
    assert found.recorded.conversations == read
