"""A rank dies and the others go on: in ``launch``, in a quorum, and with the shards of an optimizer."""

import os
import signal
import subprocess
import sys
import time

import pytest
import torch
import torch.distributed as dist

from ringzero import RankError, RankTimeout, launch
from ringzero.explain import deadlock
from ringzero.record import recorder

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
    ranks = launch(some_die, dead, signal.SIGKILL, world_size=5, trace=True, may_lose=True)
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


def test_the_process_that_watches_over_a_rank_may_be_lost_with_it():
    def kill_the_parent():
        if dist.get_rank() == 1:
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        return dist.get_rank()

    ranks = launch(kill_the_parent, world_size=3, may_lose=True)
    assert ranks.returns == [0, None, 2]
    assert "with the process that watched over it" in repr(ranks)
    assert launch(lambda: dist.get_rank(), world_size=3).returns == [0, 1, 2]


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
    (operation,) = recorder.read(tmp_path / "trace", 0)
    assert (operation.kind, operation.group, operation.bytes) == ("all_reduce", "a group", 12)
