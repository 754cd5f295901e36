"""What a stuck call says. Each program has one fault; the sentence must name the culprit and its line."""

import inspect
import random
import re
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from ringzero import RankError, RankTimeout, launch
from ringzero.explain.diagnose import deadlocked, diagnose, difference
from ringzero.explain.state import RankState
from ringzero.record.operation import Operation

X = 4  # elements


def absent():
    x = torch.ones(X)
    dist.all_reduce(x)
    if dist.get_rank() == 1:
        time.sleep(60)  # here
    dist.all_reduce(x)


def only_rank_0():
    if dist.get_rank() == 0:
        dist.all_reduce(torch.ones(X))  # here


def swapped():
    x = torch.ones(X)
    if dist.get_rank() == 1:
        dist.broadcast(x, 0)  # here
    dist.all_reduce(x)
    dist.broadcast(x, 0)


def sizes():
    dist.all_reduce(torch.ones(X + (dist.get_rank() == 2)))  # here


def dtypes():
    dist.all_reduce(torch.ones(X, dtype=torch.float64 if dist.get_rank() == 1 else torch.float32))  # here


def roots():
    dist.broadcast(torch.ones(X), src=dist.get_rank() % 2)  # here


def send_cycle():
    rank, n = dist.get_rank(), dist.get_world_size()
    dist.send(torch.ones(X), (rank + 1) % n)  # here
    dist.recv(torch.ones(X), (rank - 1) % n)


def receive_alone():
    if dist.get_rank() == 2:
        dist.recv(torch.ones(X), 0)
        dist.recv(torch.ones(X), 0)  # here
    if dist.get_rank() == 0:
        dist.send(torch.ones(X), 2)


def one_step_more():
    for _ in range(5 if dist.get_rank() == 0 else 4):
        dist.all_reduce(torch.ones(X))  # here


def busy_loop():
    while dist.get_rank() == 1:
        pass  # here
    dist.barrier()


def never_waited():
    if dist.get_rank() == 0:
        dist.isend(torch.ones(1_000_000), 1)  # here
    if dist.get_rank() == 1:
        time.sleep(1.0)  # rank 0 has returned by then
        dist.recv(torch.ones(1_000_000), 0)


def handle_dropped():
    """Rank 0 goes on, to wait for what rank 1 sends when it has got its message."""
    x = torch.ones(1_000_000)
    if dist.get_rank() == 0:
        dist.isend(x, 1)  # here
        dist.send(x[:1], 1, tag=1)
        dist.recv(x, 1)
    if dist.get_rank() == 1:
        dist.recv(x[:1], 0, tag=1)  # not before the handle is dropped: a machine under load may be late with it
        dist.recv(x, 0)
        dist.send(x, 0)


def room_too_small():
    if dist.get_rank() == 0:
        dist.send(torch.ones(30), 1)  # here
    if dist.get_rank() == 1:
        dist.recv(torch.ones(20), 0)


def left_out():
    x = torch.ones(X)
    if dist.get_rank() != 1:
        dist.all_reduce(x)  # here
    dist.all_reduce(x)
    dist.barrier()


def passed_by_others():
    """Rank 2 is done with the gather at once. It waits for rank 0, and so does rank 1, which has returned."""
    rank, x = dist.get_rank(), torch.ones(X)
    if rank == 1:
        return
    dist.gather(x, [torch.ones(X) for _ in range(3)] if rank == 0 else None, 0)  # here
    if rank == 2:
        dist.recv(x, 0)


def nobody_sends():
    if dist.get_rank() == 1:
        dist.recv(torch.ones(X))  # here


def group_of_some():
    group = dist.new_group([0, 1])
    if dist.get_rank() == 1:
        dist.all_reduce(torch.ones(X), group=group)  # here


def nobody_communicates():
    time.sleep(60)  # here


EXPECTED = {
    absent: "rank 1 never entered all_reduce #2; ranks 0, 2 wait there, {file} line {next}; rank 1 is at .*, {here}",
    only_rank_0: "rank 0 stands apart: ranks 1, 2 never entered all_reduce #1; rank 0 waits there, {here}; rank 1 had",
    swapped: "rank 1 stands apart: the ranks disagree on collective #1: ranks 0, 2 called .* broadcast #1, {here}",
    sizes: "ranks 0, 1 called all_reduce #1 on 16 bytes of float32, {here}; rank 2 called all_reduce #1 on 20 bytes",
    dtypes: "ranks 0, 2 called all_reduce #1 on 16 bytes of float32, {here}; rank 1 .* on 32 bytes of float64, {here}",
    roots: "ranks 0, 2 called broadcast #1 with root 0, {here}; rank 1 called broadcast #1 with root 1, {here}",
    send_cycle: "a cycle: rank 0 waits to send to rank 1, {here}; rank 1 waits to send to rank 2, .* dist.batch_isend",
    receive_alone: "rank 2 waits to receive from rank 0, {here}, but rank 0 sent rank 2 only 1 message; rank 0 had ret",
    one_step_more: "rank 0 stands apart: ranks 1, 2 never entered all_reduce #5; rank 0 waits there, {here}",
    busy_loop: "rank 1 never entered barrier #1; ranks 0, 2 wait there, .*; rank 1 is at busy_loop, {file} line",
    never_waited: "rank 0 posted a send, {here}, and returned without waiting for it.* rank 1 waits to receive",
    handle_dropped: "rank 0 posted a send, {here}, and never waited for it: dropping its handle cancels it; rank 1 .*",
    room_too_small: "rank 0 sent 120 bytes to rank 1, {here}; rank 1 made room for 80",
    left_out: "rank 1 left out all_reduce #1; ranks 0, 2 called it, {here}; rank 1 called .*, {file} line {next}",
    passed_by_others: "rank 1 never entered gather #1; rank 0 waits there, {here}; rank 1 had returned",
    nobody_sends: "rank 1 waits to receive from any rank, {here}, but all ranks sent rank 1 nothing; rank 0 had ret",
    group_of_some: "rank 0 never entered all_reduce #1; rank 1 waits there, {here}; rank 0 had returned",
    nobody_communicates: "ranks 0, 1, 2 are in no communication and not done: rank 0 is at nobody_communicates, {here}",
}


@pytest.mark.parametrize("program", EXPECTED, ids=lambda program: program.__name__)
def test_the_culprit_and_its_line_are_named(program):
    check(program, EXPECTED[program], *inspect.getsourcelines(program))


def check(program, expected, lines, first):
    """What is said of the ``program``, whose ``lines`` begin with line ``first`` of its file."""
    file = Path(program.__code__.co_filename).name
    here = first + next(i for i, line in enumerate(lines) if "# here" in line)
    places = {"file": file, "here": f"{file} line {here}", "next": here + 1}
    expected = re.sub(r"\{(\w+)\}", lambda match: str(places[match[1]]), expected)
    with pytest.raises(RankError) as caught:
        launch(program, world_size=3, timeout=8.0)
    assert re.search(expected, str(caught.value)), str(caught.value)


def test_an_error_in_one_rank_is_not_explained_away():
    """A rank's own exception is the cause, even if the others were then left waiting."""

    def fails():
        if dist.get_rank() == 1:
            raise ValueError("mine")
        dist.all_reduce(torch.ones(X))

    with pytest.raises(RankError, match=r"^rank 1 failed:\n(.*\n)*ValueError: mine") as caught:
        launch(fails, world_size=3)
    assert not isinstance(caught.value, RankTimeout)


ONE_PEER = ("header", "broadcast", "gather")
KINDS = ("send", "recv", *ONE_PEER, "all_reduce", "reduce_scatter", "barrier", "new_group")


def test_whatever_the_records_say_there_is_an_answer():
    """Records of ranks that were cut off anywhere, in any mixture: a sentence or none, never an exception."""
    said = set()
    for seed in range(2000):
        ranks = some_ranks(seed)
        said |= {re.sub(r"\d.*", "", str(diagnose(ranks))), str(difference(ranks))[:20]}
        deadlocked(ranks)
    assert len(said) > 10


def some_ranks(seed):
    rng = random.Random(seed)
    world = range(rng.randint(1, 5))
    groups = {"0": [*world]} | {name: sorted(rng.sample(world, rng.randint(1, len(world)))) for name in "12"}
    kinds = rng.sample(KINDS, rng.randint(1, 4))
    return [
        RankState(
            rng.choice(("running", "running", "returned", "gone")),
            [_some_operation(rng, rank, kinds, groups) for _ in range(rng.randint(0, 5))],
            functions=rng.choice(((), (), ("new_group",))),
        )
        for rank in world
    ]


def _some_operation(rng, rank, kinds, groups):
    kind, (group, members) = rng.choice(kinds), rng.choice([*groups.items()])
    peers = members + [None] if kind in ("send", "recv") else members if kind in ONE_PEER else [None]
    wait = rng.choice((None, 1.0, 1.0))
    peer_rank = rng.choice(peers)
    call = rng.choice((None, 1, 2)) if kind in ("send", "recv", "header") else None
    return Operation(
        kind=kind,
        rank=rank,
        peer=None if peer_rank is None else members.index(peer_rank),
        bytes=rng.choice((4, 8)),
        dtype="float32",
        group=group,
        members=tuple(members),
        call=call,
        called=call and "all_reduce",
        tag=rng.choice((0, 1)),
        line=f"a.py line {rng.randint(1, 3)}",
        start=rng.random(),
        wait=wait,
        end=wait and rng.choice((None, 2.0, 2.0)),
    )
