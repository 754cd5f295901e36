"""One call on the ranks of a pool, seen from the caller: watch over it, end it, and read what the ranks left."""

import contextlib
import os
import time
from collections.abc import Collection
from dataclasses import asdict, replace
from pathlib import Path

from ringzero import processes
from ringzero.explain import deadlock, queues, report
from ringzero.ranks import devices, plain_data
from ringzero.ranks.job import Job
from ringzero.ranks.pool import Pool
from ringzero.ranks.results import RankError, Ranks, RankTimeout, warn_if_cut
from ringzero.record import trace_file
from ringzero.record.operation import Operation

GRACE_SECONDS = 0.3  # after one rank failed: how long the others have to report their own errors
STACK_SECONDS = 5.0  # a rank on a busy machine writes its stack within this; one that is stopped never does
KILL_SECONDS = 30.0


def run(pool: Pool, pickled: bytes, job: Job) -> Ranks:
    """Do the ``job``, the function and arguments ``pickled``, on the first ranks of a pool. Errors as ``launch``."""
    try:
        with pool.call_directory() as folder:
            (folder / "job.pkl").write_bytes(pickled)
            if devices.is_strict(job.device):
                (folder / report.QUEUES).touch()
            call = Call(pool, replace(job, folder=str(folder)))
            call.watch()
            return call.result()
    except RankError:
        raise
    except BaseException:  # an interrupt can leave a message half read
        pool.broken = True
        raise


class Call:
    """One call. ``running`` are its ranks that have not ended, ``exits`` the exit codes of the others by rank, and
    ``lost`` the ranks that were allowed to end early, with what ended them.
    """

    def __init__(self, pool: Pool, job: Job):
        self.pool, self.job, self.folder = pool, job, Path(job.folder)
        self.running = set(range(job.world_size))
        self.exits: dict[int, int | None] = {}
        self.lost: dict[int, str] = {}
        self.failed = self.deadlocked = False
        self.start = time.monotonic()
        self.deadline = self.start + job.timeout
        self.seconds = 0.0

    def watch(self) -> None:
        """Until all ranks have ended. They are killed when one failed, when all wait for ever, or when time is up."""
        ended: set[int] = set()  # by themselves, while the others wrote their stacks
        self.pool.send(self.running, {"job": asdict(self.job)})
        try:
            self._watch()
            self.seconds = time.monotonic() - self.start
            if self.running:
                ask_for_stacks(self.pool, self.folder, self.running, ended)
        finally:
            kill(self.pool, self.running - ended)
        for rank in self.exits:
            if not self._has_result(rank):
                mark_as_gone(self.folder, rank)

    def _watch(self):
        pool = self.pool
        watched = deadlock.Watch(
            self.folder, self.job.world_size, lambda ranks: pool.send(ranks, {"stack": True}), pool.cpu_seconds
        )
        while self.running and not self.deadlocked:
            left = self.deadline - time.monotonic()
            if left <= 0 and (self.failed or left < -processes.END_SECONDS or not self._all_have_results()):
                return
            self.deadlocked = not self.failed and watched.deadlocked(self.running)
            for rank, status in pool.exits(min(max(left, 0.01), deadlock.LOOK_SECONDS)).items():
                if rank in self.running:  # a pool may be larger than the call
                    self.running.remove(rank)
                    self._has_ended(rank, status)

    def _has_ended(self, rank, status):
        if self.job.may_lose and (status is None or status < 0):
            mark_as_gone(self.folder, rank)  # also with a result: the others wait until it is done, or gone
            if not self._has_result(rank):
                self.lost[rank] = report.ended_by(status)
            return
        self.exits[rank] = status
        if not self.failed and (status != 0 or not self._has_result(rank)):
            self.failed, self.deadline = True, min(self.deadline, time.monotonic() + GRACE_SECONDS)

    def _has_result(self, rank):
        return (self.folder / f"{rank}.result").exists()

    def _all_have_results(self):
        """Whether the ranks still running have only what their code started to end."""
        return all(map(self._has_result, self.running))

    def result(self) -> Ranks:
        """What came of it. Raises RankError or RankTimeout, with the output of all ranks."""
        job = self.job
        output = [report.read(self.folder / f"{rank}.out") for rank in range(job.world_size)]
        if self.failed:
            rank, text = report.failure(self.folder, self.exits, job.world_size, self.lost)
            raise RankError(text, rank, output)
        if len(self.lost) == job.world_size:
            ends = ", ".join(f"rank {rank} ({how})" for rank, how in self.lost.items())
            text = f"all ranks were lost, so none is left to return anything: {ends}"
            raise RankError(text, next(iter(self.lost)), output)
        if self.running:
            seconds = self.seconds if self.deadlocked else job.timeout
            rank, text = report.timeout(self.folder, self.running, job.world_size, seconds, self.deadlocked)
            raise RankTimeout(text, rank, output, self.deadlocked)
        returns = []
        for rank in range(job.world_size):
            try:
                returns.append(None if rank in self.lost else plain_data.load(self.folder / f"{rank}.result"))
            except ValueError as error:
                raise RankError(f"rank {rank} left a result that cannot be read: {error}", rank, output) from None
        if devices.is_strict(job.device) and (why := self._another_order()):
            raise RankError(why, 0, output)
        trace = [op for operations in self._records() for op in operations] if job.trace else []
        return Ranks(returns, output, self.seconds, warn_if_cut(trace), self.lost)

    def _records(self) -> list[list[Operation]]:
        return [trace_file.read(self.folder / f"{rank}.trace", rank) for rank in range(self.job.world_size)]

    def _another_order(self):
        """Why the ranks could hang on NCCL though they have returned; None if they could not, or a record is cut."""
        records = self._records()
        is_cut = any(op.missing for operations in records for op in operations[-1:])
        return None if is_cut else queues.another_order(records)


def mark_as_gone(folder: Path, rank: int) -> None:
    """Note that ``rank`` ended and did not return: for the survivors, and for who explains what happened."""
    with contextlib.suppress(OSError):  # a rank may have removed the folder, or put links here that lead elsewhere
        descriptor = os.open(folder, os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            os.close(os.open(f"{rank}.gone", os.O_CREAT | os.O_EXCL | os.O_WRONLY, dir_fd=descriptor))
        finally:
            os.close(descriptor)


def ask_for_stacks(pool: Pool, folder: Path, running: Collection[int], ended: set[int]) -> None:
    """Have the ranks still running write their stacks, and wait until all have, for at most ``STACK_SECONDS``.

    A rank that ends just now writes none: it is added to ``ended``.
    """
    before = {rank: len(report.read(folder / f"{rank}.stack")) for rank in running}
    pool.send(running, {"stack": True})
    deadline = time.monotonic() + STACK_SECONDS
    while time.monotonic() < deadline:
        stacks = {rank: report.read(folder / f"{rank}.stack")[before[rank] :] for rank in running}
        if all(rank in ended or stack.count("\n") > 1 for rank, stack in stacks.items()):
            break
        ended.update(rank for rank in pool.exits(0.01) if rank in running)


def kill(pool: Pool, running: Collection[int]) -> None:
    """End the calls still running. A pool with a rank that does not die within ``KILL_SECONDS`` is not used again."""
    if not running:
        return
    pool.send(running, {"kill": True})
    deadline = time.monotonic() + KILL_SECONDS
    left = set(running)
    while left and time.monotonic() < deadline:
        left -= pool.exits(0.1).keys()
    pool.broken = pool.broken or bool(left)
