"""Claims about a run of ``harness.training``: the steps are those of one process, and the messages leave in time."""

from functools import lru_cache

import torch

from ringzero.lab.claims import values
from ringzero.lab.claims.collectives import all_of, given
from ringzero.lab.claims.traffic import operations_are
from ringzero.lab.harness import training
from ringzero.lab.harness.buckets import assignment
from ringzero.lab.runs import Run
from ringzero.record.operation import Operation


def as_one_process(run: Run) -> str | None:
    """All start as rank 0, the first step's gradients are the mean over the ranks, and the end is as in one process."""
    right = _right(run)
    for what, key in (("at the start", "start"), ("the gradient of", "gradients"), (f"after {_steps(run)}", "end")):
        why = values.close_by_name(what, [report[key] for report in run.returned], right[key])
        if why:
            return (key == "gradients" and (_never_averaged(run) or _largest_of_all(run))) or why
    return None


def _never_averaged(run):
    """Which gradient is not the mean, if what it is instead is the gradient of the rank's own part."""
    for rank, report in enumerate(run.reports):
        own, mean = _right(run, rank)["gradients"], _right(run)["gradients"]
        for name, gradient in report.gradients.items():
            far = values.close_by_name("", [{name: gradient}], {name: mean[name]})
            if far and not values.close_by_name("", [{name: gradient}], {name: own[name]}):
                return f"on rank {rank} the gradient of {name} is that of its own part: it was not averaged"
    return None


def _largest_of_all(run):
    """Which gradient is, element by element, the largest of all ranks' own."""
    own = [_right(run, rank)["gradients"] for rank in range(run.world_size)]
    for rank, report in enumerate(run.reports):
        for name, gradient in report.gradients.items():
            largest = torch.stack([gradients[name] for gradients in own]).amax(0)
            if not values.close_by_name("", [{name: gradient}], {name: largest}):
                return f"on rank {rank} the gradient of {name} has the largest numbers of all ranks, not their mean"
    return None


def _right(run, only=None):
    return _alone(run.world_size, tuple(run.case.options.items()), only)


@lru_cache(maxsize=32)
def _alone(ranks, options, only):
    return training.alone(ranks, only=only, **dict(options))


def _steps(run):
    steps = run.option("steps", 2)
    return f"{steps} step{'s' * (steps > 1)}"


@given(as_one_process)
def alike_on_all_ranks(run: Run) -> str | None:
    """Parameters and buffers are the same on all ranks in the end, to the last bit."""
    ends = [report.end for report in run.reports]
    return next((why for name in ends[0] if (why := values.same(name, [end[name] for end in ends]))), None)


def buckets(run: Run) -> list[tuple[int, int]]:
    """``(bytes, first layer)`` of each bucket of the run's model, as torch itself would assign them."""
    sizes, layers = [], []
    for name, parameter in training.model_of(**run.case.options).trained().items():
        sizes.append(parameter.numel() * parameter.element_size())
        layers.append(int(name.split(".")[1]))
    found = assignment(sizes, run.option("cap"))
    return [(sum(sizes[i] for i in some), min(layers[i] for i in some)) for some in found]


def all_reduces(run: Run, rank: int) -> list[Operation]:
    """The all-reduces of a rank, in the order of the calls."""
    return [op for op in run.operations[rank] if op.kind == "all_reduce"]


@given(as_one_process)
def one_all_reduce_a_bucket(run: Run) -> str | None:
    """In each step a rank reduces its buckets, each once and whole, the last layer's first, and sends nothing else.

    Alone, it may send nothing.
    """
    expected = [size for size, _ in buckets(run)]
    for rank, report in enumerate(run.reports):
        if report.buckets != expected:
            held, due = _list(report.buckets), _list(expected)
            return f"on rank {rank} self.buckets has buckets of {held} bytes, expected {due}"
    for rank in range(run.world_size if run.world_size > 1 else 0):
        made, steps = [op.bytes for op in all_reduces(run, rank)], run.option("steps", 2)
        if made != steps * expected:
            return f"in {_steps(run)} rank {rank} all-reduced {_list(made)} bytes, expected {_list(expected)} in each"
    return _other_messages(run)


def _other_messages(run):
    """What a rank called in a step besides all-reduces."""
    for rank, report in enumerate(run.reports):
        for op in run.operations[rank]:
            if op.kind != "all_reduce" and op.start >= report.steps[0]["began"]:
                return f"rank {rank} called {op.kind} in a step ({op.line}): the all-reduces of the buckets are enough"
    return None


def _list(numbers, most=8):
    shown = ", ".join(map(str, numbers[:most])) or "no"
    return shown + (f", … ({len(numbers)} messages)" if len(numbers) > most else "")


@given(as_one_process)
def leaves_while_backward_runs(run: Run) -> str | None:
    """Each bucket leaves before the backward pass comes to the next layer, and is waited for when it is over.

    In every step that uses all layers.
    """
    if run.world_size == 1:
        return None
    filled = buckets(run)
    for rank, report in enumerate(run.reports):
        ends = [times["began"] for times in report.steps[1:]] + [float("inf")]
        for step, (times, end) in enumerate(zip(report.steps, ends, strict=True), 1):
            made = [op for op in all_reduces(run, rank) if times["began"] <= op.start < end]
            if times["all_used"] and (why := _leaves_late(made, filled, times)):
                return f"rank {rank}, step {step}{why}"
    return None


def _leaves_late(made, filled, times):
    """Why the all-reduces of a step did not leave in time, or were waited for too early; None if they were right."""
    if len(made) != len(filled):
        return f": {len(made)} all-reduce{'s' * (len(made) != 1)}, expected {len(filled)}"
    for number, (op, (_, layer)) in enumerate(zip(made, filled, strict=True), 1):
        which = f", bucket {number} of {len(filled)}"
        late = [i for i, when in times["begun"].items() if i < layer and when < op.start]
        if op.start > times["over"] and late:
            return f"{which}: full when layer {layer} was done, but it left after the backward pass"
        if late:
            return f"{which}: full when layer {layer} was done, but it left when layer {min(late)} had begun"
        if op.wait is None:
            return f"{which}: never waited for"
        if op.wait < times["over"]:
            return f"{which}: waited for before the backward pass was over, which stood still meanwhile"
    return None


@given(as_one_process)
def silent_inside_no_sync(run: Run) -> str | None:
    """In no step a rank sends anything inside ``no_sync``."""
    for rank, report in enumerate(run.reports):
        for step, times in enumerate(report.steps, 1):
            for op in run.operations[rank]:
                if times["began"] <= op.start <= times["quiet_until"]:
                    return f"in step {step} rank {rank} called {op.kind} on {op.bytes} bytes inside no_sync"
    return None


@given(as_one_process)
def one_all_reduce_a_parameter(run: Run) -> str | None:
    """In each step a rank reduces every trained parameter's gradient, one by one, and nothing else."""
    sizes = [p.numel() * p.element_size() for p in training.model_of(**run.case.options).trained().values()]
    return operations_are(lambda run: run.option("steps", 2) * [("all_reduce", size) for size in sizes])(run)


def mean_is_that_of_the_whole_batch(run: Run) -> str | None:
    """The mean over ranks of the gradients of the parts is the gradient of the whole batch, and so is the loss."""
    model = training.Model(run.option("seed"))
    x, y = training.batch(run.option("seed"), run.option("samples"))
    columns = run.option("columns", training.OUTPUTS)
    loss = (model(x) - y)[:, :columns].square().mean()
    loss.backward()
    gradients = {name: p.grad for name, p in model.named_parameters()}
    mean = {name: sum(report.gradients[name] for report in run.reports) / run.world_size for name in gradients}
    why = values.close_by_name("the gradient of", [mean], gradients) or values.close(
        "the loss", [sum(report.loss for report in run.reports) / run.world_size], [loss.detach().reshape(1)]
    )
    return why and why.replace("on rank 0", "the mean over the ranks of")


@given(mean_is_that_of_the_whole_batch)
def each_sample_once(run: Run) -> str | None:
    """No sample is on two ranks, none is left out, and no rank has more than its share rounded up."""
    samples = run.option("samples")
    for rank, report in enumerate(run.reports):
        if report.calls > 1:
            return f"rank {rank} called the model {report.calls} times; once, with all of its samples, is enough"
    taken = [report.seen.shape[0] for report in run.reports]
    most = -(-samples // run.world_size)
    if max(taken) > most:
        return f"rank {taken.index(max(taken))} took {max(taken)} of {samples} samples, at most {most} are its own"
    rows = [tuple(row) for report in run.reports for row in report.seen.tolist()]
    whole = {tuple(row) for row in training.batch(run.option("seed"), samples)[0].tolist()}
    if len(rows) != samples or set(rows) != whole:
        return f"the ranks took {len(set(rows) & whole)} of the {samples} samples, in {len(rows)} rows"
    return None


def leaves_the_batch_alone(run: Run) -> str | None:
    """The samples and what they should give stay what they were."""
    changed = [rank for rank, report in enumerate(run.reports) if not report.kept]
    return f"rank {changed[0]} changed the x or the y that it was given" if changed else None


def trained_are_those_of_rank_0(run: Run) -> str | None:
    return _are_those_of_rank_0(run, "the parameter", "trained")


def frozen_are_those_of_rank_0(run: Run) -> str | None:
    return _are_those_of_rank_0(run, "the frozen", "frozen")


def buffers_are_those_of_rank_0(run: Run) -> str | None:
    return _are_those_of_rank_0(run, "the buffer", "buffers")


def _are_those_of_rank_0(run, what, kind):
    model = training.Model(**run.case.options)
    right = {"trained": model.trained(), "frozen": model.frozen(), "buffers": dict(model.named_buffers())}[kind]
    return values.close_by_name(what, [report[kind] for report in run.returned], right, 0)


state_is_that_of_rank_0 = all_of(trained_are_those_of_rank_0, frozen_are_those_of_rank_0, buffers_are_those_of_rank_0)


@given(state_is_that_of_rank_0)
def parameters_are_kept(run: Run) -> str | None:
    """Parameters are the objects that they were, trained as they were; they and buffers have the memory they had."""
    bad = [rank for rank, report in enumerate(run.reports) if not report.kept]
    if bad:
        return f"on rank {bad[0]} parameters were replaced or changed their requires_grad"
    for rank, report in enumerate(run.reports):
        if report.moved:
            return f"on rank {rank} {report.moved[0]} has other memory now: write into the memory that it has"
    return None


@given(state_is_that_of_rank_0)
def one_broadcast_a_tensor(run: Run) -> str | None:
    """Each rank calls ``broadcast`` once for each parameter and buffer, and nothing else."""
    model = training.Model(**run.case.options)
    tensors = [*model.parameters(), *model.buffers()]
    return operations_are(lambda run: [("broadcast", t.numel() * t.element_size()) for t in tensors])(run)
