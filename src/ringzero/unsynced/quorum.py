"""A quorum: the ranks that take part in a step. They agree on it again when one is lost and when one comes.

    quorum = Quorum("10.0.0.1:29400", name=f"{hostname}-{pid}", expected=4)
    members = quorum.form(state)            # who is in; they talk through quorum.group
    ...                                     # a step's communication; ok = it raised no error
    if quorum.vote(ok) == NO:               # the same answer on all members: this step does not count
        members = quorum.form(state)        # without those that were lost

Two rules hold, by means of a store that all ranks reach. (1) Time is cut into *epochs*, and the *members* of an epoch
are decided once. Each rank registers; a member of the last epoch proposes those that have registered; the first
proposal counts (``compare_set``). (2) A step is committed by all members or by none. Each says that it is ready, and
the last one writes "yes". A member with an error, or one that has waited too long, writes "no". The first verdict
counts.

This is the protocol of torchft (Meta, 2024) without its two servers: there a "lighthouse" decides who takes part, and
"managers" collect the votes. Here both are keys in a store. The store's own host must not fail.

Members talk through gloo. The connection to a process that has died raises an error at once. A member that saw an error
closes all its connections, so the error reaches all members. NCCL raises no such error: torchft aborts the communicator
from a watchdog and makes a new one. What is on a GPU must be copied to the host to be sent here.
"""

import contextlib
import json
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from torch import Tensor

from ringzero.collectives.run import run
from ringzero.collectives.schedule import Schedule, is_number, is_whole
from ringzero.record import recording_group
from ringzero.record.wire import OTHER_TAG

NO, YES, JOIN = "no", "yes", "yes, and let somebody in"  # verdicts on a step
TRIES = 10  # epochs in a row without a step, before the error: more than lost members must be wrong
LAST_SECONDS = 10.0  # how long a host waits until all members know that the job is finished; one may have died
LONGEST_PAUSE = 0.01  # seconds between two looks into the store

Member = tuple[str | int, Any]  # name, and the state that it registered with


class QuorumLost(RuntimeError):  # noqa: N818  (it says what was lost)
    """Too few members are left, or they do not let this rank in."""


class Finished(QuorumLost):
    """The members have finished the job, so nobody lets this rank in."""


def host(address: str = "127.0.0.1", port: int = 0) -> dist.TCPStore:
    """A store in this process for quorums on any machine: they connect to ``f"{address}:{store.port}"``.

    Keep it for as long as the job runs, in a process that does not fail: ``until_finished``.
    """
    return dist.TCPStore(address, port, is_master=True, wait_for_workers=False)


def until_finished(store: dist.Store) -> None:
    """Wait until the members have finished the job, and know it."""
    while not store.check(["quorum/finished"]):
        time.sleep(LONGEST_PAUSE)
    members, deadline = int(store.get("quorum/finished")), time.monotonic() + LAST_SECONDS
    while store.add("quorum/knows", 0) < members and time.monotonic() < deadline:
        time.sleep(LONGEST_PAUSE)


class MemberLost(RuntimeError):  # noqa: N818
    """A member is lost, or too slow: what was exchanged with it, or waited for, did not come."""


@contextlib.contextmanager
def exchanging() -> Iterator[None]:
    """Inside, what gloo raises because a member is lost becomes MemberLost. Do nothing else there."""
    try:
        yield
    except RuntimeError as error:  # gloo has no class of its own
        raise MemberLost(str(error)) from None


class Quorum:
    """This process's part in a quorum.

    ``store`` is the "host:port" of a ``host()``, or a store of ``torch.distributed``; None is that of the default
    process group. Inside ``launch`` that is a file, which will do for a page but not for a job: a process that is
    killed while it writes the file may leave the others stuck.
    ``name``, a string or number, is this process's own; a process that replaces a lost one needs another name. None is
    the rank in the default process group.
    ``expected`` members begin together, and never fewer than ``least`` go on.
    ``wait``, seconds: a member that is later than the others by more is left out. The others also wait so long for a
    lost one before they go on.
    ``patience``, seconds: how long to wait to be let in, and at the very beginning for ``least`` members.
    """

    def __init__(
        self,
        store: dist.Store | str | None = None,
        name: str | int | None = None,
        *,
        expected: int = 1,
        least: int = 1,
        wait: float = 5.0,
        patience: float = 600.0,
    ):
        for what, value in {"expected": expected, "least": least}.items():
            if not is_whole(value) or value < 1:
                raise ValueError(f"{what} is {value!r}; give a number of members, 1 or more")
        if not (is_number(wait) and is_number(patience)) or not 0 < wait <= patience:
            raise ValueError(
                f"wait is {wait!r} and patience is {patience!r}; give seconds, wait above 0 and at most patience"
            )
        self.store = dist.PrefixStore("quorum", _connected(store))
        self.name = dist.get_rank() if name is None else name
        if self.store.add(f"name/{self.name}", 1) > 1:
            raise ValueError(f"another process was a member named {self.name!r}; give each process a name of its own")
        self.expected, self.least, self.wait, self.patience = expected, least, wait, patience
        self.epoch, self.ballot = -1, 0  # the last epoch this rank was a member of, and the last vote in it
        self.names: list[str | int] = []  # of its members
        self.group: Any = None
        self._tries = 0  # epochs since the last step

    @property
    def place(self) -> int:
        """This member's rank in ``group``."""
        return self.names.index(self.name)

    def form(self, state: Any) -> list[Member]:
        """Become a member of the next epoch that can be formed. Returns each one's ``(name, state)``, as in ``group``.

        ``state`` is anything that JSON takes. Members of the epoch before come first, in their order there, then new
        ones by name. Raises QuorumLost when fewer than ``least`` come, Finished when the job is over.
        """
        self.leave()
        epoch = self.epoch
        while True:
            epoch += 1
            members = self._decided(epoch, state)
            if self.name not in (name for name, _ in members):
                continue  # it was too late for this epoch
            self.epoch, self.ballot, self.names = epoch, 0, [name for name, _ in members]
            self._tries += 1
            if self._tries > TRIES:
                raise QuorumLost(f"{TRIES} epochs in a row came to no step; can all members reach each other?")
            if self.vote(True) == NO:  # one has died since it registered; gloo would wait for it for seconds
                continue
            try:
                with exchanging():
                    self.group = self._connect()
                return members
            except MemberLost:
                self.vote(False)

    def vote(self, ok: bool) -> str:
        """Whether all members are ``ok``: YES, NO, or JOIN, which is YES and a request for a new epoch; see ``form``.

        The k-th vote of an epoch on one member is the k-th on all. All members get the same verdict.
        """
        self.ballot += 1
        ready, verdict = (f"{self.epoch}/{what}/{self.ballot}" for what in ("ready", "verdict"))
        if ok and self.store.add(ready, 1) == len(self.names):
            somebody_came = self.store.add(f"{self.epoch + 1}/came", 0) > 0
            self.store.compare_set(verdict, "", JOIN if somebody_came else YES)
        elif not (ok and self._until(verdict, self.wait)):
            self.store.compare_set(verdict, "", NO)
        answer = self.store.get(verdict).decode()
        if answer != NO and self.ballot > 2:  # a step; the first two votes were on the members and on their state
            self._tries = 0
        if answer != NO and self.place == 0:  # all have voted, so all have read the verdict before this one
            for what in ("ready", "verdict"):
                self.store.delete_key(f"{self.epoch}/{what}/{self.ballot - 1}")
        return answer

    def share(self, value: Any = None) -> Any:
        """Returns, on all members of this epoch, the ``value`` that one of them passes. Once in an epoch.

        Raises MemberLost when nobody passes one.
        """
        key = f"{self.epoch}/shared"
        if value is not None:
            self.store.set(key, json.dumps(value))
        elif not self._until(key, self.wait):
            raise MemberLost(f"no member has said within {self.wait:g} s what it had to tell the others")
        return json.loads(self.store.get(key))

    def names_in(self, epoch: int) -> list[str | int]:
        """Who the members of an earlier epoch were."""
        return [name for name, _ in json.loads(self.store.get(f"{epoch}/members"))]

    def run(self, schedule: Schedule, vector: Tensor) -> None:
        """A collective of the members, in place. Raises MemberLost."""
        with exchanging():
            run(schedule, vector, "sum", self.group)

    def exchange(self, sends: list[tuple[Tensor, int]], receives: list[tuple[Tensor, int]]) -> None:
        """Send and receive ``(tensor, peer)``. Raises MemberLost."""
        with exchanging():
            works = [self.group.recv([tensor], peer, OTHER_TAG) for tensor, peer in receives if tensor.numel()]
            works += [self.group.send([tensor], peer, OTHER_TAG) for tensor, peer in sends if tensor.numel()]
            for work in works:
                work.wait()

    def leave(self) -> None:
        """Close the connections to the members. What they still exchange with this one raises an error there."""
        group, self.group = self.group, None
        if hasattr(group, "close"):  # one that is recorded
            group.close()

    def finish(self) -> str:
        """Vote that the job is done. After YES members may end, and nobody else is let in."""
        verdict = self.vote(True)
        if verdict == YES:
            self.store.set("finished", str(len(self.names)))
            self.store.add("knows", 1)
            self.leave()
        return verdict

    def _decided(self, epoch: int, state: Any) -> list[Member]:
        """Register for an epoch, if there is still time, and return its members once they are decided."""
        key, start, proposes = f"{epoch}/members", time.monotonic(), epoch == self.epoch + 1
        if not self.store.check([key]):
            number = self.store.add(f"{epoch}/came", 1)
            self.store.set(f"{epoch}/came/{number}", json.dumps([self.name, state]))
        limit = self.wait if self.epoch >= 0 and proposes else self.patience
        while not self.store.check([key]):
            waited = time.monotonic() - start
            came = self._came(epoch) if proposes else []
            if proposes and len(came) >= self.least and (self._all(came) or waited > self.wait):
                self.store.compare_set(key, "", json.dumps(came))
            elif waited > limit or (not proposes and self.store.check(["finished"])):
                raise self._too_few(came, waited) if proposes else self._not_let_in(waited)
            else:
                time.sleep(LONGEST_PAUSE)
        return [(name, state) for name, state in json.loads(self.store.get(key))]

    def _came(self, epoch: int) -> list[Member]:
        """Who has registered for an epoch: the members of the one before, in their order, then the others by name."""
        keys = [f"{epoch}/came/{number + 1}" for number in range(self.store.add(f"{epoch}/came", 0))]
        came = [json.loads(self.store.get(key)) for key in keys if self.store.check([key])]
        before = {name: place for place, name in enumerate(self.names)}
        return sorted(came, key=lambda member: (before.get(member[0], len(before)), str(type(member[0])), member[0]))

    def _all(self, came: list[Member]) -> bool:
        names = {name for name, _ in came}
        return names.issuperset(self.names) if self.names else len(names) >= self.expected

    def _connect(self):
        store, here = dist.PrefixStore(f"{self.epoch}/gloo", self.store), self.names.index(self.name)
        ranks = self.names if all(isinstance(name, int) for name in self.names) else []
        limit = timedelta(seconds=self.wait)
        return recording_group.gloo(store, here, len(self.names), limit, f"epoch {self.epoch}", ranks)

    def _until(self, key: str, seconds: float) -> bool:
        """Wait until ``key`` is there, for at most so many seconds. (``Store.wait`` prints warnings when it fails.)"""
        deadline, pause = time.monotonic() + seconds, LONGEST_PAUSE / 64
        while not self.store.check([key]):
            if time.monotonic() > deadline:
                return False
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        return True

    def _too_few(self, came: list[Member], waited: float) -> QuorumLost:
        here = [name for name, _ in came]
        missing = ", ".join(str(name) for name in self.names if name not in here)
        return QuorumLost(
            f"least={self.least} members are needed and {len(here)} came within {waited:.1f} s: "
            f"{', '.join(map(str, here))}" + (f"; missing: {missing}" if missing else "")
        )

    def _not_let_in(self, waited: float) -> QuorumLost:
        if self.store.check(["finished"]):
            return Finished(f"{self.name} was not let in: the members have finished the job")
        return QuorumLost(
            f"{self.name} was not let in within {waited:.1f} s: the members are lost, or a step of theirs is longer"
        )


def _connected(store: dist.Store | str | None) -> dist.Store:
    if store is None:
        return dist.distributed_c10d._get_default_store()
    if not isinstance(store, str):
        return store
    address, _, port = store.rpartition(":")
    if not (address and port.isdigit()):
        raise ValueError(f'store is {store!r}; give "host:port", such as "10.0.0.1:29400"')
    return dist.TCPStore(address, int(port), is_master=False)
