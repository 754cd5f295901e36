"""Sharded training for checks: some steps on ranks, every byte they hold and send counted, and claims about that.

What is trained is a ``training.Model`` of ten layers, eight of one size. ``train(make, **case)`` calls ``make(layers)``
on every rank and trains with what that returns: an object with ``flats``, ``gradients`` (this rank's shard of each
flat's mean gradient), ``reduce()`` after the backward pass, and ``step()``. The oracle is torch's AdamW in one process.
"""

import warnings
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise

import torch
import torch.distributed as dist

from ringzero import collectives
from ringzero.lab import claims, training
from ringzero.launch import trace
from ringzero.memory import MemoryTimeline, label

HIDDEN = (33,) * 9
# A usual eps, 1e-8, would let rounding decide the sign of a step whose gradient is nearly 0.
ADAMW = {"lr": 1e-2, "betas": (0.9, 0.999), "eps": 1e-5, "weight_decay": 0.01}
NUMBERS = ("exp_avg", "exp_avg_sq")  # AdamW's, for each parameter


def network(seed, hidden=HIDDEN):
    return training.Model(seed, hidden)


def numbers(shape, seed):
    """Random numbers, the same in every process, on the CPU."""
    return torch.randn(shape, generator=torch.Generator("cpu").manual_seed(seed), device="cpu")


def train(make, *, seed, steps=2, passes=1, hidden=HIDDEN, then=None):
    """On a rank: ``steps`` steps of ``passes`` backward passes each, and what there is to report of them.

    ``then(module, zero)`` is called afterwards; what it returns comes along as "then".
    """
    warnings.filterwarnings("ignore", "Full backward hook is firing")  # at the first layer, in stage 3
    rank, ranks = dist.get_rank(), dist.get_world_size()
    module = network(seed, hidden)
    report, before = {}, len(trace.recorded())
    with MemoryTimeline(module) as memory:
        zero = make(list(module.layers))
        _must_be_their_own(zero)
        for flat in zero.flats:
            must_have_memory(flat.shard)
        memory.mark("made")
        for step in range(steps):
            memory.mark("start")
            for i in range(passes):
                with plainly("forward"):
                    loss = training.loss_of(module, seed + 100 * step + i, rank, ranks)
                module.seen.clear()
                memory.mark("forward")
                with plainly("backward"):
                    loss.backward()
                memory.mark("backward")
            del loss
            zero.reduce()
            if step == 0:
                report["gradients"] = _plain(zero.gradients)
            _label(zero.gradients, "gradients")
            memory.mark("reduced")
            zero.step()
            _label([number for state in zero.states for number in state.values()], "optimizer")
            memory.mark("step")
            if step == 0:
                report["first"] = _state(module, zero)
        history = memory.history()
    report["sent"] = sum(op["bytes"] for op in trace.recorded()[before:] if op["kind"] == "send")
    report["then"] = then(module, zero) if then else None
    report["last"] = _state(module, zero)
    with torch.no_grad():
        report["output"] = module(training.batch(seed)[0])
    return report | {"memory": _phases(history), "history": [history.bytes, history.seconds, history.marks]}


def _label(values, kind):
    for value in values:
        if isinstance(value, torch.Tensor):
            label(value, kind)


def _state(module, zero):
    """Parameters by name, those that are there, and the shard of each flat."""
    there = {name: p for name, p in module.named_parameters() if _is_there(p)}
    return {
        "parameters": dict(zip(there, _plain(there.values()), strict=True)),
        "shards": _plain(flat.shard for flat in zero.flats),
    }


def _plain(tensors):
    """As lists, which are no tensors held."""
    return [None if tensor is None else tensor.tolist() for tensor in tensors]


def _is_there(parameter):
    return parameter.untyped_storage().nbytes() >= parameter.nbytes


def must_have_memory(shard):
    """Raise what a student can read before anyone looks at a shard whose memory went with the whole vector."""
    if shard.untyped_storage().nbytes() < shard.nbytes:
        raise RuntimeError("the shard has lost its memory: it is a view of the vector that was freed, not a copy")


@contextmanager
def plainly(what):
    """Say in plain words what torch says of storages."""
    try:
        yield
    except RuntimeError as error:
        if "storage of size 0" not in str(error) and "not allocated yet" not in str(error):
            raise
        why = "uses parameters whose memory was freed, and not gathered again into the same storage"
        raise RuntimeError(f"the {what} pass {why}") from error


def _must_be_their_own(zero):
    for part in (zero, *zero.flats):
        if type(part).__module__.startswith(("ringzero", "torch")):
            raise RuntimeError(f"{type(part).__module__}.{type(part).__name__} is not to be used: write it yourself")


def _phases(history):
    """For the last mark of each name: bytes "held" then, and the "peak" of the phase that it ended.

    What autograd keeps for the backward pass, activations, is left out.
    """
    held = [total - kept for total, kept in zip(history.totals, history.bytes["activations"], strict=True)]
    phases = {}
    for (_, begin), (name, end) in pairwise([("", 0), *history.marks]):
        phases[name] = {"held": held[end], "peak": max(held[begin : end + 1])}
    return phases


# What is right.


def layer_vectors(named):
    """``{layer: its tensors laid end to end}`` of ``{parameter's name: tensor}``."""
    layers = {}
    for name, tensor in named.items():
        layers.setdefault(name.rpartition(".")[0], []).append(tensor.detach().reshape(-1))
    return {layer: torch.cat(parts) for layer, parts in layers.items()}


def owned(vector, ranks, rank):
    """A rank's part of a vector cut among so many."""
    start, stop = collectives.chunk_bounds(vector.numel(), ranks)[rank : rank + 2].tolist()
    return vector[start:stop]


def alone(run):
    """What the run comes to in one process: gradients of the first step, parameters, AdamW's numbers, an output."""
    return _alone(run.world_size, tuple(run.case.options.items()))


@lru_cache(maxsize=32)
def _alone(ranks, options):
    case = {"steps": 2, "passes": 1, "hidden": HIDDEN} | dict(options)
    seed, module = case["seed"], network(case["seed"], case["hidden"])
    optimizer, report = torch.optim.AdamW(module.parameters(), **ADAMW), {}
    for step in range(case["steps"]):
        for i in range(case["passes"]):
            for rank in range(ranks):
                (training.loss_of(module, seed + 100 * step + i, rank, ranks) / ranks).backward()
        report.setdefault("gradients", {name: p.grad for name, p in module.named_parameters()})
        optimizer.step()
        optimizer.zero_grad()
        report.setdefault("first", {name: p.detach().clone() for name, p in module.named_parameters()})
    report["last"] = {name: p.detach() for name, p in module.named_parameters()}
    for number in NUMBERS:
        report[number] = {name: optimizer.state[p][number] for name, p in module.named_parameters()}
    return report | {"output": module(training.batch(seed)[0]).detach()}


def sizes(run):
    """How many parameters each layer of the run's model has."""
    return [vector.numel() for vector in layer_vectors(alone(run)["last"]).values()]


def shard_bytes(run, rank):
    """Bytes of one fp32 number for each parameter that ``rank`` owns."""
    return sum(4 * owned(torch.empty(size, device="cpu"), run.world_size, rank).numel() for size in sizes(run))


# Claims.


def as_one_process(run):
    """Gradients of the first step, parameters after it and after the last, and the output then are those of AdamW."""
    right, n = alone(run), run.world_size
    gradients = [report["gradients"] for report in run.returned]
    if why := _shards_differ("in the first step the shard of the gradient of", gradients, right["gradients"]):
        return why
    for when in ("first", "last"):
        what, states = f"after the {when} step", [report[when] for report in run.returned]
        if why := _shards_differ(f"{what} the shard of", [state["shards"] for state in states], right[when]):
            return why
        for rank, state in enumerate(states):
            whole = {name: right[when][name] for name in state["parameters"]}
            if why := _close(what, rank, state["parameters"], whole):
                return f"{why}; all shards are right, were they handed round?"
    outputs = [report["output"] for report in run.returned]
    return claims.close("the model's output after the last step", outputs, n * [right["output"]], 1e-3)


def _shards_differ(what, shards, right):
    """Why some rank's shards are not those of the vectors that the tensors ``right`` make, layer by layer."""
    whole = layer_vectors(right)
    for rank, mine in enumerate(shards):
        if len(mine) != len(whole):
            return f"on rank {rank} there are {len(mine)} shards, expected one for each of the {len(whole)} layers"
        expected = {layer: owned(vector, len(shards), rank) for layer, vector in whole.items()}
        if why := _close(what, rank, dict(zip(whole, mine, strict=True)), expected):
            return why
    return None


def _close(what, rank, got, expected):
    got = {name: None if values is None else torch.tensor(values) for name, values in got.items()}
    some = {name: right for name, right in expected.items() if right.numel() or got[name] is None}
    why = claims.close_by_name(what, [got], some)
    return why and why.replace("on rank 0", f"on rank {rank}")


def states_are_sharded(run):
    """At the end of a step a rank that has whole parameters holds two numbers for each one it owns, and no more."""
    for rank, report in enumerate(run.returned):
        due = 2 * shard_bytes(run, rank)
        besides = report["memory"]["step"]["held"] - 4 * sum(sizes(run))
        if besides > due + _slack(run):
            return (
                f"after the step rank {rank} holds {besides:,} bytes besides the parameters; "
                f"two numbers for each of the {due // 8:,} that it owns, of {sum(sizes(run)):,}, are {due:,}"
            )
    return None


def gradients_are_sharded(run):
    """After the backward pass a rank holds its shard of the gradients; at no time did it hold many layers' whole."""
    for rank, report in enumerate(run.returned):
        memory, due, layer = report["memory"], shard_bytes(run, rank), 4 * max(sizes(run))
        gradients = memory["backward"]["held"] - memory["start"]["held"]
        if gradients > due + _slack(run):
            return (
                f"after the backward pass rank {rank} holds {gradients:,} bytes of gradients; its shard is {due:,}, "
                f"all of them {4 * sum(sizes(run)):,}"
            )
        most = memory["backward"]["peak"] - memory["start"]["held"] - due
        if most > 4.5 * layer:
            return (
                f"during the backward pass rank {rank} held {most:,} bytes more than its shard of the gradients, "
                f"{most / layer:.3g} layers; one layer whole, twice, is {2 * layer:,}"
            )
    return None


def layers_come_and_go(run):
    """Between layers a rank holds shards alone; in the forward pass one whole layer, in backward its gradients too."""
    for rank, report in enumerate(run.returned):
        memory, shard, layer = report["memory"], shard_bytes(run, rank), 4 * max(sizes(run))
        start, whole = memory["start"]["held"], 4 * sum(sizes(run))
        if memory["step"]["held"] > 3 * shard + _slack(run):
            return (
                f"after the step rank {rank} holds {memory['step']['held']:,} bytes; its shards of the parameters and "
                f"of AdamW's two numbers are {3 * shard:,}, all parameters {whole:,}"
            )
        left = memory["forward"]["held"] - start
        if left > _slack(run):
            return (
                f"after the forward pass rank {rank} holds {left:,} bytes more than before it, "
                f"{left / layer:.3g} layers: what was gathered is still there"
            )
        for phase, due, most in (("forward", 0, 2.5), ("backward", shard, 5.0)):
            more = memory[phase]["peak"] - start - due
            if more > most * layer:
                return (
                    f"during the {phase} pass rank {rank} held {more:,} bytes more than its shards, {more / layer:.3g} "
                    f"layers of {layer:,}; the whole model has {whole:,}"
                )
    return None


def _slack(run):
    """Bytes that may be held besides: the buffer into which the ring receives, step counts, a loss."""
    return 3 * max(sizes(run))


def sends_at_most(gathers):
    """A claim: a step sends what one reduce-scatter and so many all-gathers of every layer send."""

    def claim(run):
        n, steps, total = run.world_size, run.case.options.get("steps", 2), 4 * sum(sizes(run))
        for rank, report in enumerate(run.returned):
            due = sum(
                collectives.ring_reduce_scatter(n).bytes_sent(size, 4)[rank]
                + gathers * collectives.ring_all_gather(n).bytes_sent(size, 4)[rank]
                for size in sizes(run)
            )
            sent = report["sent"] / steps
            if sent > due + 8 * len(sizes(run)):
                return (
                    f"rank {rank} sent {sent:,.0f} bytes a step, {sent / total:.3g} times the parameters' {total:,}; "
                    f"{due:,}, {due / total:.3g} times, would do"
                )
        return None

    return claim
