"""The record room: what a rank computed and communicated, written while it ran and read by another process."""

import json
import random
import sys

import pytest
import torch
import torch.distributed as dist

import ringzero
from ringzero import launch
from ringzero.explain.diagnose import deadlocked, diagnose, difference
from ringzero.explain.state import RankState
from ringzero.ranks import Ranks
from ringzero.record import Operation, bytes_sent, calls, computing, export, pairs, recorded, recorder, trace_file, wire
from ringzero.record.operation import COMMUNICATION, COMPUTE
from ringzero.record.traced_work import TracedFuture, TracedMessage
from tests.explain.test_diagnose import some_ranks


@pytest.fixture
def recording(tmp_path):
    started = recorder.start(tmp_path / "0.trace", rank=0)
    yield started
    recorder._recorder = None
    started.close()


def a_step():
    rank, n = dist.get_rank(), dist.get_world_size()
    with computing("forward"):
        dist.barrier()  # computing may communicate

    @computing("backward")
    def backward():
        dist.all_reduce(torch.ones(4))

    for _ in range(2):
        backward()
    messages = [
        dist.P2POp(dist.isend, torch.full((3,), 2.0**40 + rank), (rank + 1) % n),
        dist.P2POp(dist.irecv, torch.zeros(3), (rank - 1) % n),
    ]
    with recorder.noting_heads():
        for work in dist.batch_isend_irecv(messages):
            work.wait()
    for work in dist.batch_isend_irecv(messages):
        work.wait()


def test_what_ranks_compute_and_communicate_is_one_trace(tmp_path):
    ranks = launch(a_step, world_size=2, trace=True)
    for rank in (0, 1):
        mine = [op for op in ranks.trace if op.rank == rank]
        assert [op.kind for op in mine] == [
            *("forward", "barrier", "backward", "all_reduce", "backward", "all_reduce"),
            *("send", "recv", "send", "recv"),
        ]
        assert [op.stream == COMPUTE for op in mine] == [True, False, True, False, True] + 5 * [False]
        assert [op.batch for op in mine] == 6 * [None] + [0, 0, 1, 1]
        assert [op.head for op in mine] == 6 * [None] + [2.0**40, None, None, None], "float32 keeps no more"
        forward, barrier = mine[:2]
        assert forward.start <= barrier.start
        assert barrier.end <= forward.end
        lines = [int(op.line.removeprefix("test_record.py line ")) for op in mine]
        assert lines[1] == lines[0] + 1, "the line of the with"
        assert lines[3] < lines[2] == lines[4], "the line that called the decorated function"
    ranks.save_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    tracks = {event["args"]["name"]: event["tid"] for event in events if event["ph"] == "M"}
    assert list(tracks) == ["rank 0", "rank 0 computes", "rank 1", "rank 1 computes"]
    on = {name: {event["name"] for event in events if event["tid"] == tid} for name, tid in tracks.items()}
    assert on["rank 1 computes"] == {"thread_name", "forward", "backward"}
    assert on["rank 1"] == {"thread_name", "barrier", "all_reduce", "send", "recv"}


def test_computing_ends_when_it_raises_and_does_nothing_where_nothing_records(recording):
    with pytest.raises(KeyError), computing("lookup"):
        {}["x"]
    (op,) = recorded()
    assert (op.kind, op.stream, op.wait) == ("lookup", COMPUTE, None)
    assert op.start <= op.end
    recorder._recorder = None
    with computing("nothing"):
        assert recorded() == []


def test_what_a_rank_computes_leaves_its_wait_as_it_was(recording, monkeypatch):
    monkeypatch.setattr(trace_file.threading, "active_count", lambda: 1)  # earlier tests may have left others
    path = recording._path
    message = recording.operation("recv", 1, 4, torch.float32, "group", 0, lambda group: (group, [0, 1]))
    recording.begins_to_wait(message)
    assert trace_file.waiting(path) is not None
    with computing("meanwhile"):
        assert trace_file.waiting(path) is not None
    assert trace_file.waiting(path) is not None
    recording.has_ended(message)
    assert trace_file.waiting(path) is None
    with computing("afterwards"):
        assert trace_file.waiting(path) is None


def test_what_ranks_compute_does_not_change_what_is_said_of_them():
    for seed in range(300):
        ranks, rng = some_ranks(seed), random.Random(seed)
        busy = [
            RankState(rank.state, _with_computing(rng, r, rank.operations), rank.where, rank.functions)
            for r, rank in enumerate(ranks)
        ]
        for ask in (diagnose, difference, deadlocked):
            assert ask(busy) == ask(ranks), seed


def _with_computing(rng, rank, operations):
    added = [Operation("forward", rank, rng.random(), end=rng.choice((None, 3.0)), stream=COMPUTE) for _ in range(3)]
    return [*operations[:1], *added[:2], *operations[1:], added[2]]


def test_messages_meet_in_the_order_they_were_posted():
    def message(kind, rank, peer, size, **fields):
        return Operation(kind, rank, 0.0, peer=peer, bytes=size, members=(3, 5), group="g", **fields)

    sends = [message("send", 3, 1, 4), message("send", 3, 1, 8), message("send", 3, 1, 16, tag=2)]
    ranks = [[*sends, message("header", 3, 1, 9)], [message("recv", 5, 0, 4), message("recv", 5, None, 4)]]
    met = {channel: tuple([op.bytes for op in end] for end in ends) for channel, ends in pairs(ranks).items()}
    assert met == {(3, 5, "g", 0): ([4, 8], [4]), (3, 5, "g", 2): ([16], [])}
    assert bytes_sent(ranks[0]) == 28
    assert bytes_sent(ranks[1]) == 0


def test_the_messages_of_one_call_are_put_together():
    send, other = (Operation("send", 0, 0.0, call=call, called="all_reduce") for call in (1, 2))
    barrier = Operation("barrier", 0, 0.0)
    assert [len(call.parts) for call in calls([send, barrier, other, send])] == [2, 0, 1]
    assert calls([barrier]) == [barrier]


def test_the_latest_time_of_an_operation():
    begun = Operation("recv", 0, start=0.0)
    assert [op.last for op in (begun, begun._replace(wait=1.0), begun._replace(wait=1.0, end=2.0))] == [0.0, 1.0, 2.0]
    assert begun._replace(start=-1.0, end=0.0).last == 0.0, "a prediction may end at 0"
    assert begun.stream == COMMUNICATION
    assert begun._replace(peer=1).peer_rank == 1, "without members, of the default group"
    assert begun._replace(peer=1, members=(4, 6)).peer_rank == 6


def test_what_executor_and_recorder_agree_on():
    class Recording:
        def begin_call(self, called, tag):
            return f"records {called} with tag {tag}"

    assert wire.begin_call(Recording(), "a sum", 7) == "records a sum with tag 7"
    plain = object()
    assert wire.begin_call(plain, "a sum", 7) is plain
    assert 0 <= wire.data_tag((4, "sum")) < wire.HEADER_TAG
    assert wire.data_tag((4, "sum")) != wire.data_tag((5, "sum"))


def test_a_header_is_recorded_with_the_tag_of_its_data():
    """So two ranks' calls can be compared before any data has gone."""
    trace = launch(lambda: ringzero.all_reduce(torch.ones(2)), trace=True).trace
    assert {op.kind for op in trace} == {"header", "send", "recv"}
    assert len({op.tag for op in trace}) == 1
    (call,) = calls([op for op in trace if op.rank == 0])
    assert wire.tag_of(call) == trace[0].tag != wire.HEADER_TAG


def test_an_export_of_nothing_has_no_events(tmp_path):
    export.save_chrome_trace([], tmp_path / "none.json")
    assert json.loads((tmp_path / "none.json").read_text())["traceEvents"] == []


def test_a_batch_is_of_one_thread(recording):
    from threading import Event, Thread

    begun, over = Event(), Event()

    def batches():
        with recorder.batch():
            begun.set()
            over.wait()

    other = Thread(target=batches)
    other.start()
    begun.wait()
    recording.operation("send", 1, 4, torch.float32, "group", 0, lambda _: ("", []))
    over.set()
    other.join()
    assert [op.batch for op in recording.records()] == [None]


def test_a_trace_that_is_cut_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_file, "CAPACITY", 5)
    writer = recorder.Recorder(tmp_path / "0.trace", 0)
    for _ in range(5):
        writer.operation("send", 1, 8, torch.float32, "group", 0, lambda _: ("", []))
    assert bytes_sent(writer.records()) == 40
    for _ in range(3):
        assert writer.operation("send", 1, 8, torch.float32, "group", 0, lambda _: ("", [])) is None
    cut = writer.records()
    writer.close()
    assert [op.missing for op in cut] == [0, 0, 0, 0, 3]
    with pytest.raises(ValueError, match="no room for 3 later ones of rank 0; a sum of bytes would be wrong"):
        bytes_sent(cut)
    assert "no room for 3 later ones of rank 0" in repr(Ranks([None], [""], 1.0, cut))
    waits = RankState("running", [*cut[:-1], cut[-1]._replace(kind="recv", wait=1.0)])
    assert not deadlocked([waits, waits])
    assert diagnose([waits, RankState("running", [])]) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux takes room back from the middle of a file")
def test_a_script_that_runs_for_days_keeps_its_last_operations(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_file, "LAST", 1000)
    path = tmp_path / "0.trace"
    writer = recorder.Recorder(path, 0, of_a_script=True)
    early = writer.operation("broadcast", 0, 4, torch.float32, "rare", 0, lambda _: ("rare", [0, 1]))
    for number in range(20_000):
        kind, peer = ("send", 1) if number % 4 == 0 else ("all_reduce", None)
        late = writer.operation(kind, peer, 4, torch.float32, "group", 0, lambda _: ("group", [0, 1]))
    writer.has_ended(early)  # long after its record went back to the disk
    writer.begins_to_wait(late)
    last = trace_file.read_last(path, 0)
    writer.close()
    assert len(last.operations) == 1000
    assert (last.operations[-1].sequence, last.places[-1]) == (20_000, 14_999)
    assert last.operations[-1].wait is not None
    assert [place for op, place in zip(last.operations, last.places, strict=True) if op.kind == "send"][-1] == 4999
    assert last.counts["rare", 0, 1] == 1
    assert path.stat().st_blocks * 512 < 4 * 1000 * trace_file.RECORD.size


@pytest.mark.parametrize("lost", [False, True])
def test_a_future_is_over_also_when_its_record_is_closed(tmp_path, lost):
    writer, given = recorder.Recorder(tmp_path / "0.trace", 0), torch.futures.Future()
    writer.may_lose = True
    offset = writer.operation("all_reduce", None, 4, torch.float32, "group", 0, lambda _: ("", []))
    future = TracedFuture(given, writer, offset)
    writer.close()
    given.set_exception(RuntimeError("a rank is lost")) if lost else given.set_result(1)
    assert future.done()
    TracedMessage(None, writer, offset).__del__()  # dropped after that: nothing to note


def test_launch_warns_of_a_cut_trace(monkeypatch):
    cut = [Operation("send", 0, 0.0, missing=7)]
    monkeypatch.setattr(trace_file, "read", lambda path, rank: cut)
    with pytest.warns(UserWarning, match="no room for 7 later ones of rank 0; sums over it are too small"):
        launch(int, world_size=1, trace=True)
