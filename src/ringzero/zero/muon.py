"""Muon over shards: an update that needs whole matrices, on ranks that each hold pieces of them.

    model = ZeroStage2(module, Muon, lr=0.02, momentum=0.95, exchange="all_to_all", others={"lr": 3e-4})

Muon moves a weight matrix W, whose gradient is G, by the orthogonal matrix O nearest to the momentum. O is approximated
by five Newton-Schulz iterations, which multiply matrices in bfloat16 (Jordan et al., "Muon: An optimizer for hidden
layers in neural networks", 2024):

    B = momentum * B + (1 - momentum) * G
    U = momentum * B + (1 - momentum) * G                # with Nesterov momentum; without, U = B
    O = newton_schulz(U)
    W = (1 - lr * weight_decay) * W - lr * sqrt(max(1, rows / columns)) * O

Everything but O is computed element by element, so a rank does it on its shard. For O the whole of U must be on one
rank. A matrix that lies in one rank's shard is there already. For matrices that are cut there are three ways:

| ``exchange``   | a step sends, over all N ranks                                     | who orthogonalises a matrix    |
|----------------|--------------------------------------------------------------------|--------------------------------|
| "gather"       | (N-1) times the vectors that have a cut matrix                     | every rank that holds a piece  |
| "all_to_all"   | twice the pieces of cut matrices that their owners do not hold     | its owner                      |
| "owner"        | nothing: the model cuts none, reduces each gradient to one rank    | the rank that holds it         |
|                | and broadcasts the new matrix from there                           |                                |

U and O travel in bfloat16, which halves the bytes and changes no bit: the first thing that torch's Newton-Schulz does
is to round U to bfloat16, and its result O has that type.

Muon is for the matrices of hidden layers. Embeddings, with heads that share their weight, and what is not a matrix are
stepped by AdamW. A head of its own looks like any matrix: name it in ``others_names``. ``summary`` says who steps what.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import torch
import torch.distributed as dist
from torch.nn import Parameter

# Private to torch, and imported only here, so that the bits are those of torch.optim.Muon.
from torch.optim._muon import _adjust_lr, _zeropower_via_newtonschulz

from ringzero.zero.matrices import EXCHANGES, matrices_of
from ringzero.zero.vector import ShardedVector

KINDS = ("muon", "adamw")
# Elements a rank that are exchanged together, unless one vector has more. A larger batch shares work out more evenly
# among the owners, and takes more memory: 32 MiB for each of U, what is sent and what arrives.
BATCH = 2**24


class Muon(torch.optim.Optimizer):
    """Muon for matrices of which each rank has a shard, and AdamW for the other parameters.

    Give the class to a ZeRO model, which makes it and calls ``attach``. A parameter group's "kind" says who steps it:
    "muon", the default, or "adamw". Options are those of ``torch.optim.Muon``, and on the same gradients so are the
    bits, and besides:

    ``exchange``      how cut matrices become whole: "all_to_all", "gather" or "owner" (see this module)
    ``others``        options of ``torch.optim.AdamW`` for the groups of kind "adamw", such as ``{"lr": 3e-4}``
    ``others_names``  names of matrices that AdamW steps, such as "head.weight"

    State of a "muon" shard is ``momentum_buffer``, as long as the shard; of an "adamw" shard what AdamW keeps.

    Raises ValueError for an option that will not do.
    """

    def __init__(self, params: Iterable, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
                 nesterov: bool = True, ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
                 eps: float = 1e-7, ns_steps: int = 5, adjust_lr_fn: str | None = None, *,
                 exchange: str = "all_to_all", others: Mapping[str, Any] | None = None,
                 others_names: Collection[str] = ()):  # fmt: skip
        if exchange not in EXCHANGES:
            raise ValueError(f"exchange is {exchange!r}; take one of {', '.join(map(repr, EXCHANGES))}")
        if isinstance(others_names, str):
            raise ValueError(f"others_names is {others_names!r}; give a list of names")
        self.exchange, self.others_names = exchange, others_names
        self._vectors: dict[Parameter, ShardedVector] = {}  # by their masters
        try:
            self._adamw = torch.optim.AdamW([Parameter(torch.empty(0))], **others or {})
        except TypeError as error:
            raise ValueError(f"others are options of torch.optim.AdamW, which says: {error}") from error
        super().__init__(params, {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
        })  # fmt: skip

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As in torch. A group of kind "adamw" gets AdamW's options, one of kind "muon" Muon's."""
        if param_group.setdefault("kind", "muon") not in KINDS:
            raise ValueError(f"the kind of a parameter group is {param_group['kind']!r}; take 'muon' or 'adamw'")
        for_muon = self.defaults
        if param_group["kind"] == "adamw":
            self.defaults = self._adamw.defaults
        try:
            super().add_param_group(param_group)
        finally:
            self.defaults = for_muon
        _check_options(param_group)

    def attach(self, vectors: Sequence[ShardedVector], group: dist.ProcessGroup) -> None:
        """Learn which matrices the shards are pieces of. The model calls it on every rank, with all its ``vectors``.

        Raises ValueError, with names, where Muon has no matrix to step or is given what is not one, for an unknown name
        in ``others_names``, and for cut matrices if ``exchange`` is "owner".
        """
        attached = {vector.master: vector for vector in vectors}
        ours = [attached[master] for own in self._groups("muon") for master in own["params"] if master in attached]
        named = {name: shape for vector in ours for name, shape in vector.layout.parameters}
        if not named:
            raise ValueError("Muon has no matrix to step: no 2-D weight of a hidden layer is trained; take AdamW")
        if wrong := [f"{name} of shape {shape}" for name, shape in named.items() if len(shape) != 2]:
            raise ValueError(
                f"Muon steps matrices, and a group of kind 'muon' has {', '.join(wrong)}; put parameters "
                "that are not 2-D into a group of kind 'adamw'"
            )
        all_names = {name for vector in vectors for name in vector.parameters}
        if unknown := [name for name in self.others_names if name not in all_names]:
            raise ValueError(f"others_names has {', '.join(unknown)}, which is not among the trained parameters")
        if self.exchange == "owner":
            placed = matrices_of(tuple(vector.layout for vector in ours))
            if cut := [matrix.name for matrix in placed if matrix.is_cut]:
                raise ValueError(
                    f"with exchange='owner' a matrix must lie in one rank's shard, and {', '.join(cut)} is cut among "
                    "several; take exchange='all_to_all'"
                )
        self._vectors, self._group = attached, group

    def summary(self) -> str:
        """Which parameters Muon steps, and which AdamW does, as a sentence."""
        self._check_attached()
        return "; ".join(self._summary(kind, name) for kind, name in zip(KINDS, ("Muon", "AdamW"), strict=True)) + "."

    def _summary(self, kind: str, name: str) -> str:
        vectors = [self._vectors[master] for own in self._groups(kind) for master in own["params"]]
        members = [parameter for vector in vectors for parameter in vector.layout.parameters]
        numbers = sum(prod(shape) for _, shape in members)
        names = f": {', '.join(name for name, _ in members)}" if members else ""
        return f"{name} steps {len(members)} parameters of {numbers:,} numbers{names}"

    def sharded_states(self, param_group: dict[str, Any]) -> set[str]:
        """Names of the states of a parameter group that are as long as the shard."""
        if param_group["kind"] == "muon":
            return {"momentum_buffer"}
        return {"exp_avg", "exp_avg_sq"} | ({"max_exp_avg_sq"} if param_group["amsgrad"] else set())

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Step the shards that have a gradient. All ranks must call it, with gradients in the same groups' vectors.

        ``closure``, if given, is called first; returns what it returns. RuntimeError before ``attach``.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for own in self._groups("muon"):
            masters = [master for master in own["params"] if master.grad is not None]
            self._check_attached(masters)
            for batch in _batches([self._vectors[master] for master in masters]):
                self._step_matrices(own, batch)
        # AdamW itself, on this optimizer's groups and states.
        self._adamw.param_groups, self._adamw.state = list(self._groups("adamw")), self.state
        self._adamw.step()
        return loss

    def _step_matrices(self, own: dict[str, Any], vectors: list[ShardedVector]) -> None:
        """Step ``vectors`` of the parameter group ``own``."""
        lr, rank, layouts = float(own["lr"]), self._group.rank(), tuple(vector.layout for vector in vectors)
        iterate = partial(
            orthogonal,
            ns_coefficients=own["ns_coefficients"],
            ns_steps=own["ns_steps"],
            eps=own["eps"],
        )
        matrices = matrices_of(layouts)
        cut = [matrix for matrix in matrices if matrix.is_cut]
        updates = [self._momentum(own, vector) for vector in vectors]
        for matrix in matrices:
            if not matrix.is_cut and matrix.owner == rank:
                piece = matrix.piece(updates, rank)
                piece.copy_(iterate(piece.view(matrix.shape)).reshape(-1))
        if cut:
            EXCHANGES[self.exchange](updates, cut, layouts, self._group, iterate)
        masters = [vector.master for vector in vectors]
        updates = [update.to(master.device) for update, master in zip(updates, masters, strict=True)]
        for master in masters:
            master.mul_(1 - lr * own["weight_decay"])
        for matrix in matrices:
            adjusted = _adjust_lr(lr, own["adjust_lr_fn"], torch.Size(matrix.shape))
            matrix.piece(masters, rank).add_(matrix.piece(updates, rank), alpha=-adjusted)

    def _momentum(self, own: dict[str, Any], vector: ShardedVector) -> torch.Tensor:
        """This rank's shard of U (1-D, bfloat16), in new memory where the parameters are computed with."""
        gradient, state = vector.master.grad, self.state[vector.master]
        assert gradient is not None  # ``step`` leaves out those that have none
        if not state:
            state["momentum_buffer"] = torch.zeros_like(gradient)
        buffer = state["momentum_buffer"].lerp_(gradient, 1 - own["momentum"])
        update = gradient.lerp(buffer, own["momentum"]) if own["nesterov"] else buffer
        return update.to(vector.whole.device, torch.bfloat16, copy=True)

    def _groups(self, kind: str) -> Iterator[dict[str, Any]]:
        return (own for own in self.param_groups if own["kind"] == kind)

    def _check_attached(self, masters: Iterable[Parameter] = ()) -> None:
        if not self._vectors or any(master not in self._vectors for master in masters):
            raise RuntimeError("Muon does not know the matrices of these shards; call model.step(), the model attaches")


def orthogonal(
    matrix: torch.Tensor,
    ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
    ns_steps: int = 5,
    eps: float = 1e-7,
) -> torch.Tensor:
    """About the orthogonal matrix that is nearest to ``matrix``, in bfloat16: torch's own Newton-Schulz iterations."""
    return _zeropower_via_newtonschulz(matrix, ns_coefficients=ns_coefficients, ns_steps=ns_steps, eps=eps)


def _batches(vectors: Iterable[ShardedVector]) -> Iterator[list[ShardedVector]]:
    """The vectors in order, ``BATCH`` elements a rank together, and one vector at least. The same on all ranks."""
    batch: list[ShardedVector] = []
    for vector in vectors:
        layouts = [each.layout for each in (*batch, vector)]
        if batch and sum(layout.numel for layout in layouts) > BATCH * layouts[0].ranks:
            yield batch
            batch = []
        batch.append(vector)
    if batch:
        yield batch


def _check_options(own: dict[str, Any]) -> None:
    """Raise ValueError unless the options of a parameter group are as they must be."""
    for name in ("lr", "weight_decay", *(("momentum",) if own["kind"] == "muon" else ())):
        if not own[name] >= 0:
            raise ValueError(f"{name} is {own[name]}; give a number that is not negative")
    if own["kind"] == "muon":
        if own["adjust_lr_fn"] not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"adjust_lr_fn is {own['adjust_lr_fn']!r}; take None, 'original' or 'match_rms_adamw'")
        if len(own["ns_coefficients"]) != 3:
            raise ValueError(f"ns_coefficients is {own['ns_coefficients']}; give three numbers")
        if not 0 <= own["ns_steps"] < 100:
            raise ValueError(f"ns_steps is {own['ns_steps']}; give a number of iterations from 0 to 99")
