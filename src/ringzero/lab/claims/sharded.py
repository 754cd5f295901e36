"""Claims about a run of ``harness.sharded``: the steps are AdamW's, and a rank holds and sends no more than its due."""

from functools import lru_cache

import torch

from ringzero.collectives import ALGORITHMS
from ringzero.lab.claims import values
from ringzero.lab.claims.collectives import given
from ringzero.lab.harness import sharded
from ringzero.lab.runs import Claim, Run, part


def layer_vectors(named: dict) -> dict:
    """``{layer: its tensors laid end to end}`` of ``{parameter's name: tensor}``."""
    layers: dict[str, list] = {}
    for name, tensor in named.items():
        layers.setdefault(".".join(name.split(".")[:2]), []).append(tensor.detach().reshape(-1))
    return {layer: torch.cat(parts) for layer, parts in layers.items()}


def alone(run: Run) -> dict:
    """What the run comes to in one process (``harness.sharded.alone``)."""
    return _alone(run.world_size, tuple(run.case.options.items()))


@lru_cache(maxsize=32)
def _alone(ranks, options):
    return sharded.alone(ranks, **dict(options))


def sizes(run: Run) -> list[int]:
    """How many parameters each layer of the run's model has."""
    return [vector.numel() for vector in layer_vectors(alone(run)["last"]).values()]


def shard_bytes(run: Run, rank: int) -> int:
    """Bytes of one fp32 number for each parameter that ``rank`` owns."""
    return sum(4 * part(torch.empty(size, device="cpu"), run.world_size, rank).numel() for size in sizes(run))


def as_one_process(run: Run) -> str | None:
    """Gradients of the first step, parameters after it and after the last, and the output then are those of AdamW."""
    why = _as_one_process(run)
    return f"{why}; here another model is trained in turn with this one" if why and run.option("beside") else why


def _as_one_process(run):
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
                if state["comes_and_goes"]:
                    return f"{why}: that layer is still whole, as it was before the step. Free it once it is reduced"
                return f"{why}; all shards are right: hand them round after the step"
    outputs = [report["output"] for report in run.returned]
    return values.close("the model's output after the last step", outputs, n * [right["output"]], 1e-3)


def _shards_differ(what, shards, right):
    """Why some rank's shards are not those of the vectors that the tensors ``right`` make, layer by layer."""
    whole = layer_vectors(right)
    for rank, mine in enumerate(shards):
        if len(mine) != len(whole):
            return f"on rank {rank} there are {len(mine)} shards, expected one for each of the {len(whole)} layers"
        expected = {layer: part(vector, len(shards), rank) for layer, vector in whole.items()}
        if why := _close(what, rank, dict(zip(whole, mine, strict=True)), expected):
            return why
    return None


def _close(what, rank, got, expected):
    got = {name: None if values is None else torch.tensor(values) for name, values in got.items()}
    some = {name: right for name, right in expected.items() if right.numel() or got[name] is None}
    return values.close_by_name(what, [got], some, first_rank=rank)


@given(as_one_process)
def states_are_sharded(run: Run) -> str | None:
    """At the end of a step a rank that has whole parameters holds two numbers for each one it owns, and no more."""
    for rank, report in enumerate(run.reports):
        if report.not_let_go:
            return f"after the step gradients[{report.not_let_go[0]}] on rank {rank} is not None"
        due = 2 * shard_bytes(run, rank)
        besides = report.memory["step"]["held"] - 4 * sum(sizes(run))
        if besides > due + _slack(run):
            return (
                f"after the step rank {rank} holds {besides:,} bytes besides the parameters; "
                f"two numbers for each of the {due // 8:,} that it owns, of {sum(sizes(run)):,}, are {due:,}"
            )
    return None


@given(states_are_sharded)
def gradients_are_sharded(run: Run) -> str | None:
    """After the backward pass a rank holds its shard of the gradients; at no time did it hold many layers' whole."""
    for rank, report in enumerate(run.reports):
        memory, due, layer = report.memory, shard_bytes(run, rank), 4 * max(sizes(run))
        gradients = memory["backward"]["held"] - memory["start"]["held"]
        if gradients > due + _slack(run):
            return (
                f"after the backward pass rank {rank} holds {gradients:,} bytes of gradients; its shard is {due:,}, "
                f"all of them {4 * sum(sizes(run)):,}: drop a layer's whole gradients once they are reduced"
            )
        most = memory["backward"]["peak"] - memory["start"]["held"] - due
        if most > 4.5 * layer:
            return (
                f"during the backward pass rank {rank} held {most:,} bytes more than its shard of the gradients, "
                f"{most / layer:.3g} layers; one layer whole, twice, is {2 * layer:,}"
            )
        if report.late:
            layer, place = report.late
            return f"when the backward pass came to {place}, layer {layer} on rank {rank} still had its whole gradients"
    return None


@given(as_one_process)
def layers_come_and_go(run: Run) -> str | None:
    """Between layers a rank holds shards alone; in the forward pass one whole layer, in backward its gradients too.

    The last layer may stay whole between the two passes.
    """
    for rank, report in enumerate(run.reports):
        memory, shard, layer = report.memory, shard_bytes(run, rank), 4 * max(sizes(run))
        start, whole = memory["start"]["held"], 4 * sum(sizes(run))
        if memory["step"]["held"] > 3 * shard + _slack(run):
            return (
                f"after the step rank {rank} holds {memory['step']['held']:,} bytes; its shards of the parameters and "
                f"of AdamW's two numbers are {3 * shard:,}, all parameters {whole:,}"
            )
        left = memory["forward"]["held"] - start
        if left > layer + _slack(run):
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
        for phase, (i, place) in report.whole.items():
            return f"when the {phase} pass came to {place}, layer {i} on rank {rank} was whole, and not computed then"
    return None


def _slack(run):
    """Bytes that may be held besides: the buffer into which the ring receives, step counts, a loss."""
    return 3 * max(sizes(run))


def sends_at_most(gathers: int) -> Claim:
    """A claim: a step sends at most what one reduce-scatter and so many all-gathers of every layer send."""

    @given(as_one_process)
    def claim(run: Run) -> str | None:
        n, steps, total = run.world_size, run.option("steps", 2), 4 * sum(sizes(run))
        for rank, report in enumerate(run.reports):
            due = sum(
                ALGORITHMS["reduce_scatter"]["ring"](n).bytes_sent(size, 4)[rank]
                + gathers * ALGORITHMS["all_gather"]["ring"](n).bytes_sent(size, 4)[rank]
                for size in sizes(run)
            )
            sent = report.sent / steps
            if sent > due + 8 * len(sizes(run)):
                return (
                    f"rank {rank} sent {sent:,.0f} bytes a step, {sent / total:.3g} times the parameters' {total:,}; "
                    f"{due:,}, {due / total:.3g} times, would do"
                )
        return None

    return claim


def is_whole(*keys: str) -> Claim:
    """A claim: the checkpoint has these tensors whole for every parameter, of the right values, on every rank."""

    def claim(run):
        for key in keys:
            right = alone(run)["last" if key == "parameter" else key]
            checkpoints = [report.then["saved"] for report in run.reports]
            missing = [name for name in right if not all(key in each.get(name, ()) for each in checkpoints)]
            if missing:
                return f"{missing[0]} has no {key}"
            saved = [{name: each[name][key] for name in right} for each in checkpoints]
            if why := values.close_by_name(f"{key} of", saved, right, 1e-3):
                return why
        return None

    return claim


parameters_are_whole = is_whole("parameter")
all_is_whole = is_whole("parameter", *sharded.NUMBERS)


@given(all_is_whole)
def leaves_all_as_it_was(run: Run) -> str | None:
    """Parameters, shards and states are what they were, and in stage 3 no parameter has its memory afterwards."""
    for rank, report in enumerate(run.reports):
        there = report.last["parameters"]
        if run.option("stage") == 3 and there:
            return f"on rank {rank} the memory of {next(iter(there))} is still there afterwards"
        if report.then["changed"]:
            return f"on rank {rank} {report.then['changed'][0]} is not what it was before the checkpoint"
    return None
