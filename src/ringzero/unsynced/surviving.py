"""ZeRO-1 whose shards survive the loss of ranks.

    surviving = Surviving(module, torch.optim.AdamW, Quorum(expected=4), copies=2, lr=0.01)
    while surviving.steps < total or not surviving.finish():
        loss(module, batch(surviving.steps, surviving.rank, surviving.world_size)).backward()
        surviving.step()        # False: a rank was lost, and the ranks that are left do this batch again

In ZeRO-1 each of N ranks keeps 1/N of the optimizer's states, and a rank that dies takes them with it. Here the right
neighbour keeps a rank's chunk too. After the reduce-scatter, a rank sends this neighbour the reduced gradient of its
chunk, and both take the same step. So the two copies stay equal bit by bit, and while nothing fails no state is sent.
When ranks are lost, the survivors cut the flat vector anew, and each takes what it lacks from a copy that is left
(``recut``). GEMINI (Wang et al., SOSP 2023) keeps copies in other machines' memory too, and sends the states.

With S bytes of gradients a rank sends 2 (N-1)/N S bytes a step, as in data parallelism, and (copies-1)/N S more. The
states take ``copies`` times the memory that they take in ZeRO-1.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ringzero.collectives.formats import chunks_of
from ringzero.collectives.ring import ring_all_gather, ring_broadcast, ring_reduce_scatter
from ringzero.collectives.schedule import chunk_bounds, is_whole
from ringzero.unsynced import recut, saved_shards
from ringzero.unsynced.end_to_end import Packed, joined, take_gradient, write_back
from ringzero.unsynced.quorum import JOIN, NO, YES, Member, MemberLost, Quorum, QuorumLost
from ringzero.unsynced.saved_shards import SavedSet
from ringzero.unsynced.shards import Shards
from ringzero.unsynced.spent import Spent, Stopwatch

NOTHING_YET = -1  # the epoch of shards that a rank does not have


class Surviving:
    """``module``, trained by all members of ``quorum``; an optimizer's ``options`` come last, such as ``lr=0.01``.

    ``optimizer`` is a class of ``torch.optim`` that treats each element on its own. ``copies`` ranks keep each chunk,
    so any ``copies - 1`` ranks may be lost at once. ``checkpoint`` is a folder that all members reach; each writes its
    chunk there every ``checkpoint_every`` steps. If all copies of a chunk are lost, the members go back to the newest
    checkpoint. A job that begins with such a folder goes on from it.

    ``steps``  how many steps were committed: the next batch is number ``steps``
    ``rank``, ``world_size``, ``members``  this rank's place among the members, how many they are, their names
    ``log``    the members of each step that led to the present parameters: enough to train the same in one process
    ``spent``  where the time went
    ``shards`` the chunks that this rank keeps, and their ``optimizer``

    New members get parameters, trained or not, and buffers from the others; at the beginning all get the first
    member's. Checkpoints hold what is trained only, which must be float32. States are on the CPU, also if the module
    is on a GPU. NCCL is not used, because its survivors would hang.

    Raises ValueError or TypeError for what cannot be trained so, QuorumLost when fewer than ``quorum.least`` members
    are left, ChunksLost when chunks are gone and there is no checkpoint; both say what is on the disk.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        optimizer: type[torch.optim.Optimizer],
        quorum: Quorum,
        *,
        copies: int = 2,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 100,
        **options: Any,
    ):
        for what, value in {"copies": copies, "checkpoint_every": checkpoint_every}.items():
            if not is_whole(value) or value < 1:
                raise ValueError(f"{what} is {value!r}; give a whole number, 1 or more")
        self.quorum, self.copies, self._every = quorum, copies, checkpoint_every
        self._trained, self.shards = _trained(module), Shards(optimizer, options)
        self._vector = joined(self._trained, device="cpu")  # the parameters, as they were last gathered
        ours = {id(parameter) for parameter in self._trained}
        self._untrained = Packed(t for t in (*module.parameters(), *module.buffers()) if id(t) not in ours)
        self._epoch, self.steps = NOTHING_YET, 0  # of the quorum, when the shards were cut
        self._history: list[tuple[int, list[str | int]]] = []  # (from which step on, these are the members)
        self.folder = Path(checkpoint) if checkpoint else None
        if self.folder:
            self.folder.mkdir(parents=True, exist_ok=True)
        self._saved: int | None = None  # how many steps the last checkpoint had
        self._stopwatch = Stopwatch()
        self._form()

    @property
    def spent(self) -> Spent:
        return self._stopwatch.spent

    @property
    def rank(self) -> int:
        return self.quorum.place

    @property
    def members(self) -> list[str | int]:
        return self.quorum.names

    @property
    def world_size(self) -> int:
        return len(self.members)

    @property
    def log(self) -> list[list[str | int]]:
        ends = [first for first, _ in self._history[1:]] + [self.steps]
        spans = zip(self._history, ends, strict=True)
        return [members for (first, members), end in spans for _ in range(first, end)]

    # ---- a step

    @torch.no_grad()
    def step(self) -> bool:
        """Step with the mean of all members' gradients, and remove these. Returns whether the step counts.

        If not, parameters and ``steps`` are as they were, or those of a checkpoint; ``rank`` and ``world_size`` are
        new.
        """
        gradient = take_gradient(self._trained)
        try:
            gradients = self._reduced(gradient)
        except MemberLost:
            gradients = None
        verdict = self.quorum.vote(gradients is not None)
        if gradients is None or verdict == NO:
            self._stopwatch.count("lost")
            self._form()
            return False
        self.shards.step(gradients)
        complete = verdict != JOIN and self._gathered()
        self._stopwatch.count_step(self.steps)
        self.steps += 1
        if not complete:
            self._form()
        if self.folder and self.steps % self._every == 0:
            self._save()
        return True

    def finish(self) -> bool:
        """End together: a rank that ended alone might have chunks that others still need.

        True on all members; or False on all, when they went back to a checkpoint: train on, and ask again. If members
        are lost or come meanwhile, those who are there end, with no step more.
        """
        done = self.steps
        while self.quorum.finish() != YES:
            self._form()
            if self.steps < done:
                return False
        return True

    def _reduced(self, gradient: Tensor) -> dict[int, Tensor]:
        """``{chunk: its mean gradient}`` of the chunks that this rank keeps."""
        self.quorum.run(ring_reduce_scatter(self.world_size), gradient)
        own = self._part(gradient, self.rank).div_(self.world_size)
        gradients = {chunk: torch.empty_like(kept) for chunk, kept in self.shards.kept.items()} | {self.rank: own}
        copies = recut.keepers(self.rank, self.world_size, self.copies)[1:]
        self.quorum.exchange([(own, peer) for peer in copies], [(gradients[c], c) for c in gradients if c != self.rank])
        return gradients

    def _gathered(self) -> bool:
        """Bring the stepped parameters of all chunks into the module. Returns False if a member is lost meanwhile."""
        self._part(self._vector, self.rank).copy_(self.shards.kept[self.rank])
        try:
            self.quorum.run(ring_all_gather(self.world_size), self._vector)
        except MemberLost:
            self.quorum.vote(False)  # on the next step: the others may be in it already
            return False
        write_back(self._vector, self._trained)
        return True

    # ---- another quorum

    @torch.no_grad()
    def _form(self) -> None:
        """Find a quorum and cut the shards for its members. The old ones are kept until all members have theirs."""
        while True:
            try:
                members = self.quorum.form(self._epoch)
                about, rows = self._cut(members)
            except (QuorumLost, recut.ChunksLost) as error:
                raise type(error)(f"{error}. {self._on_disk()}") from None
            except MemberLost:
                self.quorum.vote(False)
                continue
            if self.quorum.vote(True) != NO:
                break
        self.shards.replace(rows, about)
        write_back(self._vector, self._trained)
        self.steps, self._epoch = about["steps"], self.quorum.epoch
        self._history = [*about["history"], (self.steps, list(self.members))]
        self._stopwatch.undo(self.steps)
        self._stopwatch.count("reconfiguring")
        if self.folder and about["source"] == "disk" and self.rank == 0:
            saved_shards.remove(self.folder, self.steps)  # steps that are undone
        if self.folder and about["source"] == "start":
            self._save()

    def _cut(self, members: list[Member]) -> tuple[dict[str, Any], dict[int, Tensor]]:
        """Cut the shards for these members, and make ``_vector`` whole.

        Returns what all members must know (``_about``), and ``{chunk: rows}`` of the chunks that this rank is to keep.
        """
        newest = max(epoch for _, epoch in members)
        current = {name: place for place, (name, epoch) in enumerate(members) if epoch == newest}
        pieces, leader = self._pieces(newest, current), min(current.values())
        about = self.quorum.share(self._about(pieces) if self.rank == leader else None)
        have = current.values() if newest != NOTHING_YET else [leader]
        self._send_untrained(leader, [place for place in range(len(members)) if place not in have])
        keeps = recut.kept_by(self.rank, self.world_size, self.copies)
        if about["source"] == "start":
            self._vector = joined(self._trained, device="cpu")
            self.quorum.run(ring_broadcast(self.world_size, leader), self._vector)
            return about, {chunk: self._part(self._vector, chunk).clone()[None] for chunk in keeps}
        if self.folder and pieces is None:
            saved, numel = SavedSet(*about["set"]), len(self._vector)
            bounds = chunk_bounds(numel, self.world_size).tolist()
            rows = {chunk: saved_shards.read(self.folder, saved, numel, *bounds[chunk : chunk + 2]) for chunk in keeps}
        else:
            assert pieces is not None
            rows = self._moved(pieces, keeps, 1 + len(about["rows"]), newest)
        self._part(self._vector, self.rank).copy_(rows[self.rank][0])
        self.quorum.run(ring_all_gather(self.world_size), self._vector)
        return about, rows

    def _pieces(self, newest: int, current: dict[str | int, int]) -> list[recut.Piece] | None:
        """How the shards that were cut in epoch ``newest`` travel; None if there are none, or not enough of them."""
        if newest == NOTHING_YET:
            return None
        before = self.quorum.names_in(newest)
        now_at = {place: current[name] for place, name in enumerate(before) if name in current}
        try:
            return recut.pieces(len(self._vector), self.copies, len(before), now_at, self.world_size)
        except recut.ChunksLost as lost:
            if self.folder and saved_shards.newest(self.folder):
                return None
            keepers = {chunk: [before[place] for place in places] for chunk, places in lost.kept_by.items()}
            raise recut.ChunksLost.of(keepers, len(before)) from None

    def _about(self, pieces: list[recut.Piece] | None) -> dict[str, Any]:
        """What the leader tells the others: where the shards come from, and all that is not in their rows."""
        if pieces is not None:
            return {"source": "members"} | self._progress()
        if self.folder and (saved := saved_shards.newest(self.folder)):
            return {"source": "disk", "set": saved} | saved_shards.about(self.folder, saved)
        return {"source": "start", "steps": 0, "history": [], "rows": [], "numbers": {}}

    def _progress(self) -> dict[str, Any]:
        return {"steps": self.steps, "history": self._history} | self.shards.about()

    def _moved(self, pieces: list[recut.Piece], keeps: list[int], rows: int, epoch: int) -> dict[int, Tensor]:
        """The chunks to keep, so many ``rows`` each, from what this rank and others kept in an ``epoch``."""
        begins = chunk_bounds(len(self._vector), len(self.quorum.names_in(epoch))).tolist()
        mine = {chunk: self.shards.rows(chunk) for chunk in self.shards.kept} if epoch == self._epoch else {}
        return recut.move(pieces, self.rank, mine, begins, keeps, rows, self.quorum.exchange)

    def _send_untrained(self, leader: int, others: list[int]) -> None:
        """Bring the leader's buffers and frozen parameters to others."""
        buffer = self._untrained.empty(torch.device("cpu"))
        if self.rank == leader:
            self._untrained.put(buffer)
            self.quorum.exchange([(buffer, place) for place in others], [])
        elif self.rank in others:
            self.quorum.exchange([], [(buffer, leader)])
            self._untrained.take(buffer)

    def _part(self, vector: Tensor, chunk: int) -> Tensor:
        return chunks_of(vector, self.world_size)[chunk]

    # ---- checkpoints

    def _save(self) -> None:
        """Write this rank's chunk. The set before the last is no longer needed: all have written the last."""
        assert self.folder is not None
        saved = SavedSet(self.steps, self._epoch, self.world_size)
        saved_shards.save(self.folder, saved, self.rank, self.shards.rows(self.rank), self._progress())
        if self.rank == 0 and self._saved is not None:
            saved_shards.remove(self.folder, -1, self._saved)
        self._saved = self.steps
        self._stopwatch.count("saving")

    def _on_disk(self) -> str:
        if self.folder is None:
            return "No state is on a disk: no checkpoint folder was given"
        saved = saved_shards.newest(self.folder)
        if saved is None:
            return f"No state is on a disk: {self.folder} holds no complete set"
        return f"The last state on a disk is that of step {saved.steps}, in {self.folder}"


def _trained(module: torch.nn.Module) -> list[torch.nn.Parameter]:
    """The parameters that are trained. Raises ValueError if there are none, or not all of them are float32."""
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not trained:
        raise ValueError("no parameter of the module requires a gradient, so there is nothing to train")
    if others := sorted({str(parameter.dtype) for parameter in trained} - {"torch.float32"}):
        raise ValueError(f"the module has parameters of {', '.join(others)}; convert it with module.float()")
    return trained
