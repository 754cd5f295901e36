"""Ranks in a box: their records are held against what the kernel saw on the network."""

import os
import random
import shutil
import sys
import threading
from collections import Counter
from contextlib import suppress

import cloudpickle
import pytest
import torch
import torch.distributed as dist

from ringzero import all_reduce, launch
from ringzero.data_parallel import DistributedDataParallel
from ringzero.processes import sandbox, tap
from ringzero.ranks import RankError, pool, witness
from ringzero.ranks.witness import DATA, FORGED, HELLO_BYTES, ON_THE_WIRE, PREAMBLE, Sent, Stream, Wire, contradiction
from ringzero.record import recorder
from ringzero.record.operation import Operation

in_a_box = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap (apt-get install bubblewrap)")


@pytest.fixture(scope="module", autouse=True)
def boxed():
    """All ranks of this module run in boxes, where this file is not: its functions travel by value."""
    if sandbox.missing_ability() is not None:
        pytest.skip("needs sandboxes")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    pool.stop()
    os.environ.update(sandbox.asking_for(sandbox.Limits()))
    try:
        yield
    finally:
        pool.stop()
        del os.environ[sandbox.ASKED_FOR]
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


# ---- gloo's messages, taken out of packets


def on_the_wire(slot, data, opcode=DATA):
    return PREAMBLE.pack(PREAMBLE.size + len(data), opcode, slot, 0, len(data), 0) + data


@pytest.mark.parametrize("piece", [1, 7, 48, 49, 1000])
def test_messages_are_found_however_they_are_cut_into_packets(piece):
    """Also if a packet comes twice, or before another one, and where the numbers of bytes begin again at 0."""
    sent = bytes(HELLO_BYTES) + on_the_wire(5, b"abc") + on_the_wire(2**60, bytes(100)) + on_the_wire(0, b"")
    start = 2**32 - 30
    stream = Stream(start, opened=True)
    packets = [((start + at) % 2**32, memoryview(sent)[at : at + piece]) for at in range(0, len(sent), piece)]
    packets[1:3] = packets[1:3][::-1]
    for packet in packets:
        stream.take(*packet)
        stream.take(*packet)
    assert stream.sent == [Sent(5, 3), Sent(2**60, 100), Sent(0, 0)]
    assert not stream.foreign


def test_other_bytes_are_no_messages():
    stream = Stream(0, opened=True)
    stream.take(0, memoryview(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3))
    assert stream.foreign


def test_a_packet_sent_again_may_be_cut_elsewhere_and_overlap():
    sent = bytes(HELLO_BYTES) + on_the_wire(5, bytes(range(100))) + on_the_wire(6, b"abc")
    for seed in range(50):
        dice, stream = random.Random(seed), Stream(2**32 - 20, opened=True)
        pieces = [(start, start + dice.choice([1, 10, 60])) for start in dice.choices(range(len(sent)), k=200)]
        for start, stop in [*pieces, *((start, start + 10) for start in range(0, len(sent), 10))]:
            stream.take((2**32 - 20 + start) % 2**32, memoryview(sent)[start:stop])
        assert stream.sent == [Sent(5, 100), Sent(6, 3)], seed
        assert not stream.foreign


def test_what_the_kernel_had_no_room_for_is_held_against_nobody():
    op = Operation("all_reduce", 0, 0.0, wait=0.0, end=1.0, bytes=400)
    assert contradiction(Wire(), [op, op._replace(rank=1)], 2) is not None
    assert contradiction(Wire(is_whole=False), [op, op._replace(rank=1)], 2) is None


# ---- honest programs


def looks_up_names():
    """By datagrams, as a resolver does, and from a server that is no rank."""
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.sendto(b"question", ("127.0.0.1", 53))
    with suppress(OSError):
        socket.getaddrinfo("somewhere.example", 80)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as asking:
        asking.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3)  # of this rank alone
        server.accept()[0].close()
    dist.all_reduce(torch.ones(10))


def threads_with_messages():
    """One exchanges batches, the other single messages, each on a group of its own."""
    rank, groups = dist.get_rank(), [dist.new_group(), dist.new_group()]

    def single(peer):
        for _ in range(50):
            (dist.send if rank < peer else dist.recv)(torch.ones(3), peer, group=groups[0])

    def batches(peer):
        for _ in range(50):
            operations = [dist.P2POp(post, torch.ones(3), peer, groups[1]) for post in (dist.isend, dist.irecv)]
            for work in dist.batch_isend_irecv(operations):
                work.wait()

    if (peer := rank ^ 1) < dist.get_world_size():
        threads = [threading.Thread(target=each, args=(peer,)) for each in (single, batches)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def every_kind():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.ones(1001)
    many = [torch.ones(1001) for _ in range(n)]
    dist.all_reduce(x)
    dist.all_reduce_coalesced([torch.ones(3), torch.ones(5)])
    dist.broadcast(x, n - 1)
    dist.reduce(x, n - 1)
    dist.all_gather(many, x)
    dist.gather(x, many if rank == 0 else None, 0)
    dist.scatter(x, many if rank == 0 else None, 0)
    dist.reduce_scatter(x, many)
    dist.all_to_all([torch.empty(7) for _ in range(n)], [torch.ones(7) for _ in range(n)])
    dist.barrier()
    dist.all_gather_object([None] * n, {"rank": rank})
    dist.broadcast_object_list([rank, "x" * rank], 0)
    dist.all_reduce(torch.ones(0))


def messages():
    rank, n = dist.get_rank(), dist.get_world_size()
    for tag, size in enumerate((1, 0, 100_000)):
        x, y = torch.ones(size), torch.empty(size)
        ops = [dist.P2POp(dist.isend, x, (rank + 1) % n, tag=tag), dist.P2POp(dist.irecv, y, (rank - 1) % n, tag=tag)]
        for work in dist.batch_isend_irecv(ops) if n > 1 else ():
            work.wait()
    all_reduce(torch.ones(10 * rank + 3 if n == 1 else 1003))


def groups():
    rank, n = dist.get_rank(), dist.get_world_size()
    pairs = [dist.new_group([first, first + 1]) for first in range(n - 1)]
    for first, pair in enumerate(pairs):
        if rank in (first, first + 1):
            dist.all_reduce(torch.ones(10), group=pair)
            (dist.send if rank == first else dist.recv)(torch.ones(4), 2 * first + 1 - rank, group=pair)
    everyone = dist.new_group()
    dist.all_reduce(torch.ones(2000), group=everyone)
    dist.broadcast(torch.ones(3), 0)


def training():
    torch.manual_seed(dist.get_rank())
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(30, 40), torch.nn.Linear(40, 5)), bucket_cap_mb=0.001
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.randn(4, 30)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@in_a_box
@pytest.mark.parametrize("program", [every_kind, messages, groups, training, looks_up_names, threads_with_messages])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_honest_records_stand(program, n):
    launch(program, world_size=n, trace=True)
    assert pool._current.witness is not None


@in_a_box
@pytest.mark.parametrize(("program", "looked"), [(every_kind, False), (groups, True)])
def test_only_connections_that_ranks_do_not_name_are_looked_for(monkeypatch, program, looked):
    """To look for them takes a good part of a short call's time."""
    looks, look = [], witness._streams_of
    monkeypatch.setattr(witness, "_streams_of", lambda pids: looks.append(pids) or look(pids))
    launch(program, world_size=4, trace=True)
    assert bool(looks) is looked


WHOLE = Counter({(ON_THE_WIRE["all_reduce"], 320): 1})  # of 40 numbers on 2 ranks


@pytest.mark.parametrize(
    ("ended", "crossed", "stands"),
    [
        (1.0, WHOLE, True),
        (1.0, Counter({(ON_THE_WIRE["all_reduce"], 160): 1}), False),
        (1.0, Counter(), False),
        (None, WHOLE, True),
        (None, Counter({(ON_THE_WIRE["all_reduce"], 160): 1}), True),
        (None, Counter(), True),
        (None, Counter({(ON_THE_WIRE["all_reduce"], 1000): 1}), False),
        (None, 2 * [WHOLE], False),
    ],
)
def test_what_nobody_waited_for_may_have_crossed_in_part(ended, crossed, stands):
    """A student who forgets a wait is no forger: the ranks may end while the data are on their way."""
    wire = Wire()
    for counted in crossed if isinstance(crossed, list) else [crossed]:
        wire.collectives[0, 1] += counted
    trace = [Operation("all_reduce", rank=rank, start=0.0, end=ended, bytes=160) for rank in range(2)]
    assert (contradiction(wire, trace, 2) is None) is stands


@in_a_box
def test_many_messages_one_after_another():
    def ping_pong():
        x = torch.ones(3)
        for _ in range(300):
            (dist.send if dist.get_rank() == 0 else dist.recv)(x, 1 - dist.get_rank())
            (dist.recv if dist.get_rank() == 0 else dist.send)(x, 1 - dist.get_rank())

    for _ in range(3):
        launch(ping_pong, world_size=2, trace=True)


# ---- forged records, and what has none


def unrecorded():
    return dist.group.WORLD._messenger


def sends_without_a_record():
    if dist.get_rank() < 2:
        x = torch.ones(10)
        (unrecorded().send if dist.get_rank() == 0 else unrecorded().recv)([x], 1 - dist.get_rank(), 0).wait()


def collective_without_a_record():
    unrecorded().allreduce([torch.ones(100)]).wait()


def record_of_a_message():
    """On both ends, as a ring would have it."""
    rank, n = dist.get_rank(), dist.get_world_size()
    writer, group = recorder.of_this_process(), dist.group.WORLD
    for kind, peer in (("send", (rank + 1) % n), ("recv", (rank - 1) % n)):
        offset = writer.operation(kind, peer, 400, torch.float32, group, 0, lambda _: ("group", []))
        writer.begins_to_wait(offset)
        writer.has_ended(offset)


def record_of_a_collective():
    writer = recorder.of_this_process()
    writer.has_ended(writer.operation("all_reduce", None, 400, torch.float32, dist.group.WORLD, 0, lambda _: ("g", [])))


def record_of_fewer_bytes():
    dist.all_reduce(torch.ones(100_000))
    writer = recorder.of_this_process()
    writer._memory[recorder.HEAD.size + 6 : recorder.HEAD.size + 14] = (4000).to_bytes(8, "little")


def another_peer():
    """By a star, recorded as messages to neighbours."""
    rank = dist.get_rank()
    writer, x = recorder.of_this_process(), torch.ones(10)
    if rank == 0:
        unrecorded().send([x], 2, 0).wait()
    elif rank == 2:
        unrecorded().recv([x], 0, 0).wait()
    if rank == 0:
        writer.has_ended(writer.operation("send", 1, 40, torch.float32, dist.group.WORLD, 0, lambda _: ("group", [])))


def group_of_its_own():
    store = dist.FileStore(os.environ["TMPDIR"] + "/own", 3)
    group = dist.ProcessGroupGloo(store, dist.get_rank(), 3)
    group.allreduce([torch.ones(100)]).wait()


@in_a_box
@pytest.mark.parametrize(
    "program",
    [
        sends_without_a_record,
        collective_without_a_record,
        record_of_a_message,
        record_of_a_collective,
        record_of_fewer_bytes,
        another_peer,
        group_of_its_own,
    ],
)
def test_a_forged_record_is_noticed(program):
    with pytest.raises(RankError, match=FORGED):
        launch(program, world_size=3, trace=True)
    launch(messages, world_size=3, trace=True)  # the next call is not blamed


@in_a_box
def test_ranks_run_where_their_network_cannot_be_seen(monkeypatch):
    assert tap.why_not_here.__wrapped__() is None
    monkeypatch.setattr(tap, "_OPEN_THERE", "import sys; sys.exit('not permitted')")
    assert "not permitted" in tap.why_not_here.__wrapped__()
    pool.stop()
    try:
        assert len(launch(messages, world_size=2, trace=True).trace) > 0
        assert pool._current.witness is None
    finally:
        pool.stop()
