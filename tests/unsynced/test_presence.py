"""A rank that dies while a message is half-way is found to be gone: gloo alone would wait for it for ever."""

import os
import signal
import threading
import time

import pytest
import torch
import torch.distributed as dist

from ringzero import launch
from ringzero.record.wire import OTHER_TAG
from ringzero.unsynced.line import Line, through_the_host
from ringzero.unsynced.messages import Messages
from ringzero.unsynced.presence import why_gone

LONG = 40_000_000  # float32: it is on its way for a tenth of a second at least
VICTIM = 1


def die_half_way(message_began):
    """On the victim: end this process ``message_began`` seconds after a long message began."""
    threading.Timer(message_began, os.kill, (os.getpid(), signal.SIGKILL)).start()
    time.sleep(60)


def exchanged(victim_sends):
    """On 3 ranks: rank 0 is in a message with rank 1, which dies; a message with rank 2 still comes."""
    rank, long = dist.get_rank(), torch.ones(LONG)
    messages = Messages(dist.group.WORLD, torch.device("cpu"))
    if rank == VICTIM:
        _keep = messages.start({0: long}, {}) if victim_sends else messages.start({}, {0: long})
        die_half_way(0.02)
    if rank == 2:
        return messages.start({0: torch.full((3,), 2.0)}, {})()
    with_the_victim = {VICTIM: long}
    ends = messages.start(*({}, with_the_victim) if victim_sends else (with_the_victim, {}))()
    theirs = torch.zeros(3)
    return ends, messages.start({}, {2: theirs})(), theirs.tolist(), sorted(messages.lost)


@pytest.mark.parametrize("victim_sends", [True, False])
def test_messages(victim_sends):
    ranks = launch(exchanged, victim_sends, world_size=3, may_lose=True)
    ends, after, theirs, lost = ranks.returns[0]
    assert lost == [VICTIM]
    assert ends == (set(), set())
    assert after == (set(), {2})
    assert theirs == [2.0] * 3


def on_a_line():
    """On 2 ranks: both ends of a line send a long message at once, and one dies meanwhile."""
    rank, lost = dist.get_rank(), threading.Event()
    group = through_the_host(dist.group.WORLD)
    line = Line(1 - rank, group, LONG, torch.float32, lambda *_: None, lambda _: lost.set(), lambda _: None)
    line.open()
    line.send((0, 0, 0), torch.ones(LONG))
    if rank == VICTIM:
        die_half_way(0.1)
    found = lost.wait(60)
    line.close()
    return found


def test_a_line():
    assert launch(on_a_line, world_size=2, may_lose=True).returns[0]


def asked_of_the_living():
    """Asking whether another rank is there changes no message."""
    rank, group = dist.get_rank(), dist.group.WORLD
    theirs = torch.zeros(4)
    asked = [why_gone(group, 1 - rank) for _ in range(100)]
    work = dist.irecv(theirs, 1 - rank)
    asked += [why_gone(group, 1 - rank) for _ in range(100)]
    dist.send(torch.full((4,), float(rank)), 1 - rank)
    work.wait()
    ours = torch.zeros(2)  # a message as a quorum's members send them
    received = group.recv([ours], 1 - rank, OTHER_TAG)
    group.send([torch.full((2,), float(rank))], 1 - rank, OTHER_TAG).wait()
    received.wait()
    return {*asked}, theirs.tolist(), ours.tolist()


def test_the_living_are_there():
    ranks = launch(asked_of_the_living, world_size=2, trace=True, timeout=60)
    assert ranks.returns == [({None}, [1.0] * 4, [1.0] * 2), ({None}, [0.0] * 4, [0.0] * 2)]
    assert [op.kind for op in ranks.trace if op.rank == 0] == ["recv", "send"] * 2
