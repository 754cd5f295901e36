"""A rank dies and the others go on: in ``launch``, in a quorum, and with the shards of an optimizer."""

import functools
import itertools
import json
import os
import random
import re
import runpy
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from ringzero import RankError, RankTimeout, launch
from ringzero.collectives.schedule import chunk_bounds
from ringzero.explain import deadlock
from ringzero.record import recorder, trace_file
from ringzero.record.operation import bytes_sent
from ringzero.unsynced import recut, saved_shards
from ringzero.unsynced.quorum import (
    JOIN,
    NO,
    YES,
    Finished,
    MemberLost,
    Quorum,
    QuorumLost,
    exchanging,
    host,
    until_finished,
)
from ringzero.unsynced.shards import Shards
from ringzero.unsynced.surviving import Surviving
from ringzero.zero.optimizers import ELEMENTWISE

NUMEL = 5 * 7 + 7 + 7 * 3 + 3


def network():
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3))


# ---- launch(..., may_lose=True)


def die(signal_number=signal.SIGKILL):
    os.kill(os.getpid(), signal_number)


def some_die(dead, signal_number):
    rank = dist.get_rank()
    dist.all_reduce(total := torch.ones(3))
    print(f"rank {rank} counts {total[0]:g}")
    if rank in dead:
        die(signal_number)
    return rank


@pytest.mark.parametrize("dead", [[4], [0], [1, 2], [0, 1, 3]], ids=str)
def test_lost_ranks_return_none_and_the_others_go_on(dead):
    ranks = launch(some_die, dead, signal.SIGKILL, world_size=5, trace=True, may_lose=True, timeout=300.0)
    assert ranks.lost == dead
    assert ranks.returns == [None if rank in dead else rank for rank in range(5)]
    assert ranks.output == [f"rank {rank} counts 5\n" for rank in range(5)]
    assert [(op.rank, op.kind) for op in ranks.trace] == [(rank, "all_reduce") for rank in range(5)]
    assert all(f"rank {rank} was lost (SIGKILL)" in repr(ranks) for rank in dead)
    assert repr(ranks).count("was lost") == len(dead)


def test_what_ended_a_rank_is_named_and_the_next_call_uses_the_same_ranks():
    before = launch(lambda: os.getppid(), world_size=3).returns
    assert launch(some_die, [1], signal.SIGTERM, world_size=3, may_lose=True).ended_by == {1: "SIGTERM"}
    assert launch(some_die, [1], signal.SIGRTMIN + 1, world_size=3, may_lose=True).ended_by == {1: "signal 35"}
    assert launch(lambda: os.getppid(), world_size=3).returns == before
    assert "was lost" not in repr(launch(some_die, [], 0, world_size=3, may_lose=True))


def test_without_may_lose_a_killed_rank_ends_the_call():
    with pytest.raises(RankError, match="rank 1 was ended by the signal SIGKILL"):
        launch(some_die, [1], signal.SIGKILL, world_size=3)


def test_a_rank_that_raises_still_ends_the_call_and_the_lost_are_named():
    def die_or_raise():
        if dist.get_rank() == 1:
            die()
        if dist.get_rank() == 2:
            dist.recv(torch.empty(1), src=1)
        dist.recv(torch.empty(1), src=2)

    with pytest.raises(RankError, match=r"(?s)rank 2 failed.*by peer.*Lost before: rank 1 \(SIGKILL\)") as error:
        launch(die_or_raise, world_size=3, may_lose=True)
    assert error.value.rank == 2
    assert "other ranks (0) were stopped" in str(error.value)


def test_when_all_are_lost_nothing_is_returned():
    with pytest.raises(RankError, match="all ranks were lost") as error:
        launch(some_die, [0, 1], signal.SIGKILL, world_size=2, may_lose=True)
    assert "rank 0 (SIGKILL)" in str(error.value)
    assert "rank 1 (SIGKILL)" in str(error.value)
    assert error.value.output == ["rank 0 counts 2\n", "rank 1 counts 2\n"]


def test_a_rank_that_had_returned_is_not_lost():
    def kill_the_returned():
        others = [None, None]
        dist.all_gather_object(others, os.getpid())
        if dist.get_rank() == 1:
            time.sleep(0.3)  # rank 0 has returned by now, or the test proves less
            os.kill(others[0], signal.SIGKILL)
        return dist.get_rank()

    ranks = launch(kill_the_returned, world_size=2, may_lose=True)
    assert (ranks.returns, ranks.lost) == ([0, 1], [])


def test_a_rank_that_dies_before_it_says_that_it_is_done_is_not_waited_for():
    def die_when_the_result_is_written():
        if dist.get_rank() == 1:
            sys.modules["__main__"]._wait_for_all = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        return dist.get_rank()

    ranks = launch(die_when_the_result_is_written, world_size=3, may_lose=True, timeout=60)
    assert (ranks.returns, ranks.lost) == ([0, 1, 2], [])


def test_survivors_that_got_an_error_and_go_on_are_not_called_deadlocked(monkeypatch):
    monkeypatch.setattr(deadlock, "STILL_SECONDS", 0.2)

    def go_on():
        if dist.get_rank() == 2:
            time.sleep(0.3)  # the others wait for it by now
            die()
        with pytest.raises(RuntimeError, match="by peer"):
            dist.recv(torch.empty(1), src=2)
        time.sleep(0.8)  # it computes, say: neither of the two waits for anybody
        return "done"

    assert launch(go_on, world_size=3, may_lose=True).returns == ["done", "done", None]


def test_survivors_that_wait_for_one_another_are_called_deadlocked():
    def both_receive():
        if dist.get_rank() == 2:
            die()
        dist.recv(torch.empty(1), src=1 - dist.get_rank())

    with pytest.raises(RankTimeout, match="(?s)rank 0 waits to receive from rank 1.*rank 2 was lost") as error:
        launch(both_receive, world_size=3, timeout=60.0, may_lose=True)
    assert error.value.deadlocked


def test_a_collective_in_which_a_rank_died_is_over_for_nobody_who_is_still_in_it():
    """Ranks 1 and 3 exchange with rank 2 and get an error; rank 0 exchanges with 1 and 3, which do not leave."""

    def die_inside():
        rank, x = dist.get_rank(), torch.ones(4)
        if rank == 2:
            work = dist.all_reduce(x, async_op=True)
            time.sleep(0.1)
            die()
            work.wait()
        time.sleep(0.3)
        if rank == 0:
            dist.all_reduce(x)
        with pytest.raises(RuntimeError):
            dist.all_reduce(x)

    with pytest.raises(RankTimeout) as error:
        launch(die_inside, world_size=4, timeout=20.0, may_lose=True)
    assert error.value.deadlocked


def test_strict_is_refused_because_nccl_would_hang():
    with pytest.raises(ValueError, match='may_lose=True does not work with device="strict:3"'):
        launch(print, device="strict:3", may_lose=True)


def test_torchrun_is_refused_by_name(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("from ringzero import launch\nlaunch(print, may_lose=True)\n")
    environment = os.environ | {"TORCHELASTIC_RUN_ID": "a job", "RANK": "0"}
    ended = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert "ValueError: may_lose=True does not work under torchrun, which ends all ranks" in ended.stderr


def test_half_a_line_at_the_end_of_a_lost_ranks_names_hides_nothing_before_it(tmp_path):
    writer = recorder.Recorder(tmp_path / "trace", 0)
    writer.operation("all_reduce", None, 12, torch.float32, "a group", 0, lambda group: (group, [0, 1]))
    writer.close()
    with open(f"{tmp_path}/trace.names", "a") as names:
        names.write('["line", 1, "a pla')
    (operation,) = trace_file.read(tmp_path / "trace", 0)
    assert (operation.kind, operation.group, operation.bytes) == ("all_reduce", "a group", 12)


# ---- the quorum alone


@pytest.fixture
def address():
    """Of a store in this process, which no test kills."""
    store = host()
    return f"127.0.0.1:{store.port}", store  # the store lives as long as the test


def at_once(*calls):
    """What calls return that run in a thread each, or the error that they raise."""
    returned = [None] * len(calls)

    def run(number):
        try:
            returned[number] = calls[number]()
        except Exception as error:
            returned[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return returned


def until_somebody_comes(quorum):
    """The vote on the step that is about to be done will let somebody in."""
    while not quorum.store.add(f"{quorum.epoch + 1}/came", 0):
        time.sleep(0.01)


@pytest.fixture
def two(address):
    """Two members that have formed a quorum."""
    members = [Quorum(address[0], name, expected=2, wait=0.3, patience=5.0) for name in "ab"]
    formed = at_once(*(functools.partial(member.form, state) for member, state in zip(members, (1, [2]), strict=True)))
    assert formed == [[("a", 1), ("b", [2])]] * 2
    return members


def test_a_verdict_is_one_for_all(two):
    a, b = two
    assert at_once(lambda: a.vote(True), lambda: b.vote(True)) == [YES, YES]
    assert at_once(lambda: a.vote(True), lambda: b.vote(False)) == [NO, NO]
    assert a.vote(True) == NO  # b does not come in time
    assert b.vote(True) == NO  # and hears of it


def test_members_finish_together_or_not_at_all(two, address):
    a, b = two
    assert a.finish() == NO
    assert at_once(lambda: a.form(None), lambda: b.form(None)) == [[("a", None), ("b", None)]] * 2
    assert at_once(a.finish, b.finish, lambda: until_finished(address[1])) == [YES, YES, None]


def test_what_one_member_shares_all_get_and_silence_is_an_error(two):
    a, b = two
    assert at_once(lambda: a.share({"x": [1]}), b.share) == [{"x": [1]}] * 2
    assert at_once(lambda: a.form(None), lambda: b.form(None)) == [[("a", None), ("b", None)]] * 2
    with pytest.raises(MemberLost, match="no member has said within 0.3 s"):
        a.share()


def test_a_member_leaves_and_a_new_one_comes(two, address):
    a, b = two
    assert a.form("alone") == [("a", "alone")]
    c = Quorum(address[0], "c", wait=0.3, patience=5.0)

    def goes_on():
        assert a.vote(True) == YES
        until_somebody_comes(a)
        return a.vote(True), a.form("old")

    (verdict, members), seen_by_the_new = at_once(goes_on, lambda: time.sleep(0.1) or c.form("new"))
    assert verdict == JOIN
    assert members == seen_by_the_new == [("a", "old"), ("c", "new")]
    assert (a.place, c.place, a.names_in(0)) == (0, 1, ["a", "b"])
    assert b.vote(True) == NO  # it is still in the first epoch, and its vote counts for nothing


def test_who_leaves_is_an_error_for_who_waits_for_it_at_once(address):
    """Not after ``wait``, and whether messages are recorded, as in ``launch``, or not."""

    def job(address):
        quorum = Quorum(address, dist.get_rank(), expected=2, wait=60.0)
        quorum.form(None)
        sent = quorum.group.send([torch.ones(1)], 1 - quorum.place, 0)
        quorum.group.recv([torch.empty(1)], 1 - quorum.place, 0).wait()
        sent.wait()
        if quorum.place == 1:
            return quorum.leave()
        with exchanging():
            quorum.group.recv([torch.empty(1)], 1, 0).wait()

    with pytest.raises(RankError, match="MemberLost: .*by peer"):
        launch(job, address[0], world_size=2)
    store = host()
    a, b = members = [Quorum(f"127.0.0.1:{store.port}", name, expected=2, wait=60.0) for name in "ab"]
    at_once(*(functools.partial(member.form, None) for member in members))
    b.leave()
    with pytest.raises(MemberLost, match="by peer"), exchanging():
        a.group.recv([torch.empty(1)], 1, 0).wait()


def test_nobody_is_let_in_by_members_that_are_lost(two, address):
    late = Quorum(address[0], "late", wait=0.1, patience=0.2)
    with pytest.raises(QuorumLost, match="late was not let in within 0.[2-9] s: the members are lost, or a step of"):
        late.form(None)


def test_too_few_at_the_beginning(address):
    with pytest.raises(QuorumLost, match=r"least=2 members are needed and 1 came within 0.[2-9] s: a$"):
        Quorum(address[0], "a", least=2, wait=0.1, patience=0.2).form(None)


def test_members_that_cannot_reach_each_other_give_up(two, monkeypatch):
    def refused(self):
        raise RuntimeError("connection refused")

    monkeypatch.setattr(Quorum, "_connect", refused)
    errors = at_once(*(functools.partial(member.form, None) for member in two))
    assert all("10 epochs in a row came to no step" in str(error) for error in errors)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"expected": 0}, "expected is 0"),
        ({"least": 0}, "least is 0"),
        ({"wait": 0.0}, "wait is 0.0 and patience is 600.0"),
        ({"wait": 5.0, "patience": 1.0}, "wait is 5.0 and patience is 1.0"),
        ({"store": "host"}, "store is 'host'; give \"host:port\""),
        ({"name": "taken"}, "another process was a member named 'taken'"),
    ],
)
def test_a_quorum_that_cannot_be(address, options, says):
    Quorum(address[0], "taken")
    with pytest.raises(ValueError, match=says):
        Quorum(**{"store": address[0], "name": "a"} | options)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"optimizer": torch.optim.LBFGS}, ValueError, "a chunk cannot be stepped by LBFGS alone"),
        ({"optimizer": "AdamW"}, TypeError, "optimizer is 'AdamW'"),
        ({"copies": 0}, ValueError, "copies is 0"),
        ({"checkpoint_every": 0.5}, ValueError, "checkpoint_every is 0.5"),
        ({"module": network().double()}, ValueError, "parameters of torch.float64; convert it"),
        ({"module": network().requires_grad_(False)}, ValueError, "nothing to train"),
    ],
)
def test_training_that_cannot_survive(address, change, error, says):
    arguments = {"module": network(), "optimizer": torch.optim.AdamW, "quorum": Quorum(address[0], "a")}
    with pytest.raises(error, match=says):
        Surviving(**arguments | change)


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_pieces_bring_each_rank_what_it_keeps_from_ranks_that_had_it(copies):
    for before, ranks, numel in itertools.product(range(1, 6), range(1, 6), (1, 7, 20)):
        bounds = chunk_bounds(numel, ranks).tolist()
        bounds_before = chunk_bounds(numel, before).tolist()
        for left in itertools.chain(*(itertools.combinations(range(before), n) for n in range(min(before, ranks) + 1))):
            now_at = {rank: place for place, rank in enumerate(left)}
            had = {place: recut.kept_by(rank, before, copies) for rank, place in now_at.items()}
            gone = [
                chunk for chunk in range(before)
                if bounds_before[chunk] < bounds_before[chunk + 1] and not any(chunk in some for some in had.values())
            ]  # fmt: skip
            if gone:
                with pytest.raises(recut.ChunksLost) as error:
                    recut.pieces(numel, copies, before, now_at, ranks)
                assert list(error.value.kept_by) == gone
                continue
            got = {(rank, chunk): [] for rank in range(ranks) for chunk in recut.kept_by(rank, ranks, copies)}
            for source, target, old, new, start, stop in recut.pieces(numel, copies, before, now_at, ranks):
                assert old in had[source]
                assert source == target or old not in had.get(target, [])
                assert bounds_before[old] <= start < stop <= bounds_before[old + 1]
                got[target, new] += range(start, stop)
            assert got == {(rank, chunk): list(range(*bounds[chunk : chunk + 2])) for rank, chunk in got}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_chunk_that_is_cut_anew_steps_on_as_if_it_had_stayed(name):
    """Bit for bit what the optimizer does with the whole vector; what is no row of the chunks goes through JSON."""
    random = torch.Generator().manual_seed(1)
    whole, gradients = torch.randn(7, generator=random), torch.randn(6, 7, generator=random)
    rows, about = whole[None].clone(), {"rows": [], "numbers": {}}
    for turn, middle in enumerate((4, 2, 7)):
        shards = Shards(ELEMENTWISE[name], {"lr": 0.1})
        shards.replace({0: rows[:, :middle].clone(), 1: rows[:, middle:].clone()}, about)
        for gradient in gradients[2 * turn : 2 * turn + 2]:
            shards.step({0: gradient[:middle].clone(), 1: gradient[middle:].clone()})
        rows, about = torch.cat([shards.rows(0), shards.rows(1)], dim=1), json.loads(json.dumps(shards.about()))
    parameter = torch.nn.Parameter(whole)
    optimizer = ELEMENTWISE[name]([parameter], lr=0.1)
    for gradient in gradients:
        parameter.grad = gradient.clone()
        optimizer.step()
    assert torch.equal(rows[0], parameter.detach())


def test_a_set_of_files_counts_when_it_is_whole(tmp_path):
    rows = torch.arange(14.0).view(2, 7)
    for saved in (saved_shards.SavedSet(4, 0, 3), saved_shards.SavedSet(6, 1, 2)):
        bounds = chunk_bounds(7, saved.ranks).tolist()
        for rank in range(saved.ranks):
            assert saved_shards.newest(tmp_path) == (None if saved.steps == 4 else (4, 0, 3))
            saved_shards.save(tmp_path, saved, rank, rows[:, slice(*bounds[rank : rank + 2])], {"steps": saved.steps})
    (tmp_path / "step-8-epoch-1-rank-0-of-1.pt.part").write_bytes(b"half")
    saved = saved_shards.newest(tmp_path)
    assert saved == (6, 1, 2)
    assert saved_shards.about(tmp_path, saved) == {"steps": 6}
    for start, stop in itertools.combinations_with_replacement(range(8), 2):
        assert torch.equal(saved_shards.read(tmp_path, saved, 7, start, stop), rows[:, start:stop])
    saved_shards.remove(tmp_path, 4)
    assert [path.name for path in tmp_path.glob("step-[68]*")] == []
    assert saved_shards.newest(tmp_path) == (4, 0, 3)


# ---- training that survives


def batch_loss(module, step, place, members):
    """Of the batch that member ``place`` of so many ``members`` has in a step."""
    inputs = torch.randn(4, 5, generator=torch.Generator().manual_seed(1000 * step + 10 * members + place))
    return (module(inputs) - inputs[:, :3]).square().mean()


def flat(module):
    return torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()])


def begin_together():
    """The first optimizer of a process imports for seconds; nobody is to be left out for that."""
    parameter = torch.nn.Parameter(torch.zeros(2))
    parameter.grad = torch.zeros(2)
    torch.optim.AdamW([parameter]).step()
    dist.barrier()


def train(address, total, setting=None, before_step=None, seed=0, wait=1.0, **options):
    """Train until so many steps are committed; ``setting(quorum)`` and ``before_step(surviving)`` may break things."""
    begin_together()
    if late := options.pop("late", None):
        late()
    rank = dist.get_rank()
    quorum = Quorum(address, rank, wait=wait, **{"expected": 1, **options.pop("quorum", {})})
    if setting:
        setting(quorum)
    torch.manual_seed(seed)
    module = network()
    torch.nn.init.normal_(module[0].bias)
    try:
        surviving = Surviving(module, options.pop("optimizer", torch.optim.AdamW), quorum, **options)
        while surviving.steps < total or not surviving.finish():
            if before_step:
                before_step(surviving)
            batch_loss(module, surviving.steps, surviving.rank, surviving.world_size).backward()
            surviving.step()
    except Finished:
        return None
    return {
        "steps": surviving.steps,
        "log": surviving.log,
        "parameters": flat(module),
        "spent": [surviving.spent.useful, surviving.spent.lost, surviving.spent.reconfiguring, surviving.spent.saving],
        "epoch": quorum.epoch,
    }


def replay(log, optimizer=torch.optim.AdamW, seed=0, **options):
    """One process that does the steps of ``log``: the mean over each step's members, and the whole optimizer."""
    torch.manual_seed(seed)
    module = network()
    torch.nn.init.normal_(module[0].bias)
    stepper = optimizer(module.parameters(), **options)
    for step, members in enumerate(log):
        gradients = []
        for place in range(len(members)):
            module.zero_grad()
            batch_loss(module, step, place, len(members)).backward()
            gradients.append(torch.cat([parameter.grad.reshape(-1) for parameter in module.parameters()]))
        mean = in_the_rings_order(gradients).div_(len(members))
        parts = mean.split([parameter.numel() for parameter in module.parameters()])
        for parameter, part in zip(module.parameters(), parts, strict=True):
            parameter.grad = part.view(parameter.shape)
        stepper.step()
    return flat(module)


def in_the_rings_order(gradients):
    """The sum as ``ring_reduce_scatter`` adds it up: chunk c begins on rank c + 1 and ends on rank c."""
    ranks = len(gradients)
    bounds = chunk_bounds(len(gradients[0]), ranks).tolist()
    total = torch.empty_like(gradients[0])
    for chunk, (start, stop) in enumerate(zip(bounds, bounds[1:], strict=False)):
        parts = [gradients[(chunk + 1 + step) % ranks][start:stop] for step in range(ranks)]
        total[start:stop] = functools.reduce(torch.add, parts)
    return total


def dies_at(last):
    """A setting in which this rank dies before the ``last``-th time that it writes to the store or begins a message."""

    def setting(quorum):
        done = 0

        def happens():
            nonlocal done
            done += 1
            if done == last:
                die()

        quorum.store = counting_store(quorum.store, happens)
        write = recorder.Recorder._write
        recorder.Recorder._write = lambda *args: happens() or write(*args)

    return setting


def counting_store(store, happens):
    class Counting(dist.PrefixStore):
        pass

    def counted(method):
        def call(self, *args):
            if args[1:] != (0,):  # to add 0 is to look, as those who wait do again and again
                happens()
            return getattr(dist.PrefixStore, method)(self, *args)

        return call

    for method in ("add", "set", "compare_set", "delete_key"):
        setattr(Counting, method, counted(method))
    return Counting("quorum", store.underlying_store)  # the same keys as the others


def survivors(ranks):
    """What those returned who finished. They must agree on everything."""
    finished = [value for value in ranks.returns if value is not None]
    for value in finished:
        assert (value["steps"], value["log"]) == (finished[0]["steps"], finished[0]["log"])
        assert torch.equal(value["parameters"], finished[0]["parameters"])
    return finished


OPTIMIZERS = {
    "AdamW": (torch.optim.AdamW, {"lr": 0.05, "weight_decay": 0.1}),
    "SGD": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9, "dampening": 0.5}),
}


@pytest.mark.parametrize("world_size", [5, 4, 3, 2, 1])
def test_without_a_loss_it_is_data_parallel_training_bit_by_bit(address, world_size):
    """Equal bits: the replay adds in the ring's order, and an optimizer treats each element on its own."""

    def job(address, optimizer, options, copies):
        return train(
            address, 6, seed=dist.get_rank(), quorum={"expected": dist.get_world_size()},
            optimizer=optimizer, copies=copies, **options,
        )  # fmt: skip

    optimizer, options = OPTIMIZERS["AdamW" if world_size % 2 else "SGD"]
    copies = 1 + world_size % 3
    ranks = launch(job, address[0], optimizer, options, copies, world_size=world_size, trace=True)
    (first, *_) = survivors(ranks)
    assert first["log"] == [list(range(world_size))] * 6
    assert torch.equal(first["parameters"], replay(first["log"], optimizer, **options))
    chunks = (4 * chunk_bounds(NUMEL, world_size)).tolist()
    sizes = [stop - start for start, stop in zip(chunks, chunks[1:], strict=False)]
    for rank in range(world_size):
        gradients = 4 * NUMEL - sizes[rank]  # reduce-scatter: all chunks but its own
        parameters = 4 * NUMEL - sizes[(rank + 1) % world_size]  # all-gather: all but its neighbour's
        to_copies = (min(copies, world_size) - 1) * sizes[rank]
        beginning = 4 * NUMEL if rank < world_size - 1 else 0  # the first rank's parameters, along the chain
        sent = bytes_sent(operation for operation in ranks.trace if operation.rank == rank)
        assert sent == beginning + 6 * (gradients + parameters + to_copies), rank


def dies_before(steps):
    """Before a step, the ranks that ``steps`` names for it die."""

    def before_step(surviving):
        if surviving.quorum.name in steps.get(surviving.steps, []):
            die()

    return before_step


@pytest.mark.parametrize(
    ("optimizer", "world_size", "copies", "dead"),
    [
        ("AdamW", 5, 2, {1: [2], 3: [0]}),
        ("SGD", 5, 3, {2: [1, 2]}),
        ("AdamW", 4, 2, {2: [0, 2]}),
        ("SGD", 2, 2, {0: [0]}),
    ],
    ids=["one after another", "two neighbours of three copies", "two at once", "the first before its first step"],
)
def test_survivors_go_on_from_the_copies(address, optimizer, world_size, copies, dead):
    """With two ranks, in the store of ``launch``."""

    def job(address, optimizer, options):
        return train(
            address, 6, before_step=dies_before(dead), seed=dist.get_rank(), copies=copies, optimizer=optimizer,
            quorum={"expected": world_size}, **options,
        )  # fmt: skip

    optimizer, options = OPTIMIZERS[optimizer]
    store = address[0] if world_size > 2 else None
    ranks = launch(job, store, optimizer, options, world_size=world_size, may_lose=True)
    members, log = list(range(world_size)), []
    for step in range(6):
        members = [rank for rank in members if rank not in dead.get(step, [])]
        log.append(members)
    assert ranks.lost == sorted(itertools.chain(*dead.values()))
    (first, *_) = survivors(ranks)
    assert first["log"] == log
    assert torch.equal(first["parameters"], replay(log, optimizer, **options))


def dies_around(owner, method, when, after=False):
    """Have this rank die before or after a call of ``owner.method(self, ...)`` for which ``when(self)``."""
    original = getattr(owner, method)

    def called(self, *args):
        dies = when(self)
        if dies and not after:
            die()
        returned = original(self, *args)
        if dies:
            die()
        return returned

    setattr(owner, method, called)


def test_a_rank_may_die_in_any_phase_of_a_step(address):
    """When its gradients have gone out, when it has said so, in the all-gather, and while shards are cut."""

    def job(address):
        def at_step(step):
            return lambda surviving: surviving.steps == step

        class Deadly(dist.PrefixStore):
            def add(self, key, number):
                added = super().add(key, number)
                if key == "1/ready/3":  # in epoch 1, whose third vote is on its first step
                    die()
                return added

        def dies_when_ready(quorum):
            quorum.store = Deadly("quorum", quorum.store.underlying_store)

        rank = dist.get_rank()
        if rank == 1:
            dies_around(Surviving, "_reduced", at_step(1), after=True)
        if rank == 3:
            dies_around(Surviving, "_gathered", at_step(3))
        if rank == 4:
            dies_around(Surviving, "_moved", lambda surviving: surviving.steps == 4)
        return train(
            address, 6, dies_when_ready if rank == 2 else None, seed=rank, copies=4, lr=0.05, quorum={"expected": 5},
            wait=3.0,  # five ranks on a busy machine
        )  # fmt: skip

    ranks = launch(job, address[0], world_size=5, may_lose=True)
    (first,) = survivors(ranks)
    assert first["log"][0] == [0, 1, 2, 3, 4]
    assert first["log"][1] in ([0, 2, 3, 4], [0, 3, 4])  # without rank 2 if it was the last to be ready
    assert first["log"][2:4] == [[0, 3, 4]] * 2
    assert first["log"][4:] == [[0]] * 2
    assert torch.equal(first["parameters"], replay(first["log"], lr=0.05))


def job_that_loses_neighbours(address, folder, dead, expected=4, total=8, wait=1.0):
    return train(
        address, total, before_step=dies_before(dead), seed=dist.get_rank(), lr=0.05, wait=wait,
        checkpoint=folder, checkpoint_every=2, quorum={"expected": expected},
    )  # fmt: skip


def test_a_chunk_without_a_copy_is_named_with_its_ranks(address):
    with pytest.raises(
        RankError, match="ChunksLost: nobody is left who kept chunk 1 of 4, kept by 1, 2. No state is on"
    ):
        launch(job_that_loses_neighbours, address[0], None, {3: [1, 2]}, world_size=4, may_lose=True)


def test_when_all_copies_are_lost_it_goes_back_to_the_checkpoint(address, tmp_path):
    """Two die before they save step 6, so three ranks do steps 4 and 5 again: two fewer than have saved step 4."""

    def job(address, folder):
        begun, save = [], saved_shards.save

        def save_or_die(folder, saved, rank, *rows_and_about):
            if saved.steps == 6 and saved.epoch == 0 and rank in (1, 2):
                die()
            save(folder, saved, rank, *rows_and_about)

        saved_shards.save = save_or_die
        options = {"checkpoint": folder, "checkpoint_every": 2, "quorum": {"expected": 5}, "seed": dist.get_rank()}
        returned = train(address, 8, before_step=lambda surviving: begun.append(surviving.steps), lr=0.05, **options)
        return returned | {"begun": begun}

    ranks = launch(job, address[0], str(tmp_path), world_size=5, may_lose=True)
    (first, *_) = survivors(ranks)
    assert first["begun"] == [0, 1, 2, 3, 4, 5, 6, 4, 5, 6, 7]
    assert first["log"] == [[0, 1, 2, 3, 4]] * 4 + [[0, 3, 4]] * 4
    assert torch.equal(first["parameters"], replay(first["log"], lr=0.05))
    assert min(first["spent"]) > 0
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [f"step-{step}-epoch-1-rank-{rank}-of-3.pt" for step in (6, 8) for rank in range(3)]


def test_too_few_are_named_and_another_job_goes_on_from_the_disk(address, tmp_path):
    def too_few(address, folder):
        options = {"checkpoint": folder, "checkpoint_every": 2, "quorum": {"expected": 3, "least": 2}}
        return train(address, 8, before_step=dies_before({5: [0, 2]}), seed=dist.get_rank(), lr=0.05, **options)

    with pytest.raises(RankError) as error:
        launch(too_few, address[0], str(tmp_path), world_size=3, may_lose=True)
    assert "QuorumLost: least=2 members are needed and 1 came within" in str(error.value)
    assert f"1; missing: 0, 2. The last state on a disk is that of step 4, in {tmp_path}" in str(error.value)
    store = host()
    ranks = launch(
        job_that_loses_neighbours, f"127.0.0.1:{store.port}", str(tmp_path), {}, 2, world_size=2, may_lose=True
    )
    (first, *_) = survivors(ranks)
    assert first["log"] == [[0, 1, 2]] * 4 + [[0, 1]] * 4
    assert torch.equal(first["parameters"], replay(first["log"], lr=0.05))


def test_a_slow_rank_is_left_out_and_comes_back_as_a_new_one(address):
    def job(address):
        slept = []

        def before_step(surviving):
            rank = dist.get_rank()
            if surviving.steps == 2 and rank == 1 and not slept:
                slept.append(time.sleep(2.0))  # longer than the two others wait, once in the step and once for a quorum
            if surviving.steps == 5 and surviving.world_size == 2:
                until_somebody_comes(surviving.quorum)

        return train(
            address, 8, before_step=before_step, seed=dist.get_rank(), lr=0.05, wait=0.4, quorum={"expected": 3}
        )

    (first, *others) = survivors(launch(job, address[0], world_size=3))
    assert len(others) == 2
    assert first["log"] == [[0, 1, 2]] * 2 + [[0, 2]] * 4 + [[0, 2, 1]] * 2
    assert torch.equal(first["parameters"], replay(first["log"], lr=0.05))


class Scaled(torch.nn.Module):
    """What is not trained counts too: a buffer, and a frozen parameter."""

    def __init__(self, scale):
        super().__init__()
        self.inner = network()
        self.register_buffer("count", torch.tensor(round(scale)))
        self.frozen = torch.nn.Parameter(torch.full((3,), scale), requires_grad=False)

    def forward(self, inputs):
        return self.inner(inputs) * self.frozen * self.count


def test_a_new_rank_gets_everything_from_the_others(address):
    def job(address):
        begin_together()
        rank = dist.get_rank()
        quorum = Quorum(address, rank, expected=2, wait=1.0)
        if rank == 2:
            quorum.store.get("late")  # until rank 0 asks for it
        torch.manual_seed(rank)
        module = Scaled(float(rank + 2))
        surviving = Surviving(module, torch.optim.AdamW, quorum, lr=0.05)
        while surviving.steps < 6 or not surviving.finish():
            if surviving.steps == 3 and rank == 0:
                quorum.store.set("late", "")
                until_somebody_comes(quorum)
            batch_loss(module, surviving.steps, surviving.rank, surviving.world_size).backward()
            assert surviving.step()
            assert all(parameter.grad is None for parameter in module.parameters())
        shards = {chunk: shard.tolist() for chunk, shard in surviving.shards.kept.items()}
        return surviving.log, {name: value.tolist() for name, value in module.state_dict().items()}, shards

    (log, values, shards), second, (_, _, shards_of_the_new) = launch(job, address[0], world_size=3).returns
    assert log == [[0, 1]] * 4 + [[0, 1, 2]] * 2
    assert second[:2] == (log, values)
    assert (values["count"], values["frozen"]) == (2, [2.0] * 3)
    assert sorted(shards_of_the_new) == [1, 2]
    assert shards_of_the_new[2] == shards[2]  # rank 0 keeps rank 2's chunk too: the same bits


@pytest.mark.parametrize("dies", [True, False])
def test_who_dies_or_comes_when_the_others_would_finish_costs_no_step_more(address, dies):
    """``finish`` finds out on its own: the survivors end with the steps they have, and so does who comes."""

    def job(address):
        def at_the_end(quorum):
            if dist.get_rank() == 1 and dies:
                quorum.finish = die
            elif dist.get_rank() == 0 and not dies:
                quorum.finish = lambda: when_somebody_has_come(quorum)
            elif dist.get_rank() == 2 and not dies:
                quorum.store.get("at the end")

        def when_somebody_has_come(quorum):
            del quorum.finish
            quorum.store.set("at the end", "")
            until_somebody_comes(quorum)
            return quorum.finish()

        return train(address, 3, at_the_end, quorum={"expected": 3 if dies else 2}, lr=0.05)

    ranks = launch(job, address[0], world_size=3, may_lose=True)
    finished = survivors(ranks)
    assert (len(finished), ranks.lost) == ((2, [1]) if dies else (3, []))
    assert finished[0]["log"] == [[0, 1, 2] if dies else [0, 1]] * 3


def test_who_comes_when_the_job_is_finished_is_told(address):
    def late(address):
        if dist.get_rank() == 0:
            return train(address, 2, lr=0.05)["steps"]
        begin_together()
        quorum = Quorum(address, "late")
        quorum.store.get("finished")
        with pytest.raises(Finished, match="late was not let in: the members have finished the job"):
            quorum.form(None)
        return "told"

    assert launch(late, address[0], world_size=2).returns == [2, "told"]


def test_the_example_that_is_started_by_hand(address, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["survive.py", "--store", address[0], "--steps", "3", "--pause", "0"])
    runpy.run_path(str(Path(__file__).parents[2] / "book/examples/survive.py"), run_name="__main__")
    assert re.fullmatch(
        r"(step \d, 1 members, loss [\d.]+\n){3}finished; \d+% of the time was useful\n", capsys.readouterr().out
    )


# ---- killed at random moments


def pytest_generate_tests(metafunc):
    if "moment" in metafunc.fixturenames:
        metafunc.parametrize("moment", range(max(3, metafunc.config.getoption("--seeds"))))


def job_with_random_deaths(address, folder, deaths):
    """Ranks 0 to 2 begin, rank 3 comes later; each may die at a time, or before it uses the store or a message."""
    rank = dist.get_rank()
    how, when = deaths.get(rank, (None, None))

    def late():
        if how == "time":
            timer = threading.Timer(when, die)
            timer.daemon = True
            timer.start()
        if rank == 3:
            Quorum(address, "an onlooker").names_in(0)  # until the others have begun

    return train(
        address, 8, dies_at(when) if how == "use" else None, seed=3 if rank == 3 else 0, lr=0.05, wait=1.0,
        checkpoint=folder, checkpoint_every=3, quorum={"expected": 3}, late=late,
    )  # fmt: skip


def test_whoever_dies_at_whatever_moment_the_others_finish_with_the_oracles_result(address, tmp_path, moment):
    """One rank or two of four. Where both copies of a chunk go, the survivors go back to a checkpoint."""
    dice = random.Random(moment)
    deaths = {
        rank: ("time", dice.uniform(0.0, 1.5)) if dice.random() < 0.3 else ("use", dice.randint(1, 130))
        for rank in dice.sample(range(4), dice.choice([1, 2]))
    }
    ranks = launch(job_with_random_deaths, address[0], str(tmp_path), deaths, world_size=4, timeout=120, may_lose=True)
    assert set(ranks.lost) <= set(deaths)
    finished = survivors(ranks)
    assert len(finished) >= 1
    assert (finished[0]["steps"], len(finished[0]["log"])) == (8, 8)
    assert torch.equal(finished[0]["parameters"], replay(finished[0]["log"], lr=0.05))
    print(deaths, ranks.lost, finished[0]["epoch"], finished[0]["log"], [round(s, 2) for s in finished[0]["spent"]])


# ---- at the end, because it costs the ranks that are warm


def test_the_process_that_watches_over_a_rank_may_be_lost_with_it():
    def kill_the_parent():
        if dist.get_rank() == 1:
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        return dist.get_rank()

    ranks = launch(kill_the_parent, world_size=3, may_lose=True)
    assert ranks.returns == [0, None, 2]
    assert "with the process that watched over it" in repr(ranks)
