"""What a stuck call says. Each program has one fault; the sentence must name the culprit and its line."""

import re
import time

import pytest
import torch
import torch.distributed as dist

from ringzero import RankError, RankTimeout, launch

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
        time.sleep(0.3)
        dist.recv(torch.ones(1_000_000), 0)


def room_too_small():
    if dist.get_rank() == 0:
        dist.send(torch.ones(30), 1)  # here
    if dist.get_rank() == 1:
        dist.recv(torch.ones(20), 0)


def group_of_some():
    group = dist.new_group([0, 1])
    if dist.get_rank() == 1:
        dist.all_reduce(torch.ones(X), group=group)  # here


def nobody_communicates():
    time.sleep(60)  # here


EXPECTED = {
    absent: "rank 1 never entered all_reduce #2; ranks 0, 2 wait there, {file} line {next}; rank 1 is at .*, {here}",
    only_rank_0: "ranks 1, 2 never entered all_reduce #1; rank 0 waits there, {here}; rank 1 had returned; rank 2 had",
    swapped: "disagree on collective #1: ranks 0, 2 called all_reduce #1, .* rank 1 called broadcast #1, {here}",
    sizes: "ranks 0, 1 called all_reduce #1 on 16 bytes of float32, {here}; rank 2 called all_reduce #1 on 20 bytes",
    dtypes: "ranks 0, 2 called all_reduce #1 on 16 bytes of float32, {here}; rank 1 .* on 32 bytes of float64, {here}",
    roots: "ranks 0, 2 called broadcast #1 with root 0, {here}; rank 1 called broadcast #1 with root 1, {here}",
    send_cycle: "a cycle: rank 0 waits to send to rank 1, {here}; rank 1 waits to send to rank 2, .* use isend",
    receive_alone: "rank 2 waits to receive from rank 0, {here}, but rank 0 sent rank 2 only 1 message; rank 0 had ret",
    one_step_more: "ranks 1, 2 never entered all_reduce #5; rank 0 waits there, {here}",
    busy_loop: "rank 1 never entered barrier #1; ranks 0, 2 wait there, .*; rank 1 is at busy_loop, {file} line",
    never_waited: "rank 1 waits to receive from rank 0, .*; rank 0 posted that send, {here}, but returned without",
    room_too_small: "rank 0 sent 120 bytes to rank 1, {here}, which made room for 80",
    group_of_some: "rank 0 never entered all_reduce #1; rank 1 waits there, {here}; rank 0 had returned",
    nobody_communicates: "ranks 0, 1, 2 are in no communication and not done: rank 0 is at nobody_communicates, {here}",
}


@pytest.mark.parametrize("program", EXPECTED, ids=lambda program: program.__name__)
def test_the_culprit_and_its_line_are_named(program):
    lines, first = __import__("inspect").getsourcelines(program)
    here = first + next(i for i, line in enumerate(lines) if "# here" in line)
    places = {"file": "test_diagnose.py", "here": f"test_diagnose.py line {here}", "next": here + 1}
    expected = re.sub(r"\{(\w+)\}", lambda match: str(places[match[1]]), EXPECTED[program])
    with pytest.raises(RankError) as caught:
        launch(program, world_size=3, timeout=2.0)
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


def correct(seed):
    """A correct program of many kinds of operation, of random sizes, with one slow rank."""
    rank, n = dist.get_rank(), dist.get_world_size()
    common, own = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(1000 * seed + rank)
    for _ in range(8):
        kind, size = torch.randint(0, 6, (2,), generator=common).tolist()
        x = torch.ones(size + 1)
        time.sleep(float(torch.rand((), generator=own)) * 0.02)
        if kind == 0:
            dist.all_reduce(x)
        elif kind == 1:
            dist.broadcast(x, src=size % n)
        elif kind == 2:
            dist.barrier()
        elif kind == 3:
            dist.all_gather([torch.empty_like(x) for _ in range(n)], x)
        elif n > 1:
            work = dist.isend(x, (rank + 1) % n)
            dist.recv(torch.empty_like(x), (rank - 1) % n)
            work.wait()
    return seed


def test_no_false_alarm():
    for seed in range(40):
        world_size = 1 + seed % 4
        assert launch(correct, seed, world_size=world_size).returns == [seed] * world_size
