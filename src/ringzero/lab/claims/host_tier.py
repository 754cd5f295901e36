"""Claims about a run of ``harness.host_tier``: AdamW's steps, from states that are never in the device's memory."""

from ringzero.costs import offload
from ringzero.lab.claims.collectives import given
from ringzero.lab.claims.values import equal
from ringzero.lab.harness import host_tier
from ringzero.lab.runs import Run


def bytes_by_tier(
    params: int, n: int, layer: int, states: str = "device", parameters: str = "device", precision: str = "mixed"
) -> tuple[float, float, float]:
    """What ``tier_bytes`` of the lab is to give: bytes of one rank on the device, on the host, in a file.

    The library's formula, but for files: it has them twice, in whole blocks, with buffers on the host.
    """
    parameter, gradient, optimizer = each = (2, 2, 12) if precision == "mixed" else (4, 4, 8)
    shard = params / n
    device, host, file = offload.tier_bytes(shard, states, parameters, each, resident=layer)
    if states == "file":
        host = gradient * shard + (parameter * shard if parameters == "host" else 0)
        copy = parameter if parameters == "file" and precision == "mixed" else 0
        file = ((optimizer if precision == "mixed" else 4 + optimizer) + copy) * shard
    return device, host, file


def as_adamw(run: Run) -> str | None:
    """After every step the parameters are those of torch's AdamW on fp32 masters, to the last bit."""
    report, right = run.reports[0], host_tier.alone(**run.case.options)
    if "host" in report.where:
        return f"parameter {report.where.index('host')} is in host memory now; the device computes with it"
    for step, (values, expected) in enumerate(zip(report.values, right, strict=True), 1):
        for i, (got, value) in enumerate(zip(values, expected, strict=True)):
            if why := equal(f"after step {step} parameter {i}", [value.new_tensor(got)], [value]):
                return why.removeprefix("on rank 0 ")
    return None


@given(as_adamw)
def states_are_on_the_host(run: Run) -> str | None:
    """Between steps the device holds the parameters, where they were, and nothing else."""
    if not run.reports[0].kept:
        return "a parameter has other memory now; write into that which it has, with copy_"
    due, report = sum(_bytes(run)), run.reports[0]
    for when, held in enumerate(report.held):
        if held != due:
            time = f"after step {when}" if when else "after __init__"
            return f"{time} the device holds {held:,} bytes; the parameters are {due:,}"
    return None


@given(as_adamw)
def copies_what_it_must(run: Run) -> str | None:
    """In each step each gradient is copied to the host and each parameter to the device, and nothing else is."""
    sizes, unused, report = _bytes(run), run.option("unused", ()), run.reports[0]
    to_host, to_device = report.copied[0]
    if to_host != sum(sizes):
        return f"__init__ copied {to_host:,} bytes to the host; the parameters are {sum(sizes):,}"
    if to_device:
        return f"__init__ copied {to_device:,} bytes to the device, which has the parameters already"
    for step in range(1, len(report.copied)):
        stepped = sum(size for i, size in enumerate(sizes) if step != run.option("unused_in", 1) or i not in unused)
        (out_before, back_before), (out, back) = report.copied[step - 1 : step + 1]
        passes = run.option("passes", 1)
        for what, got, due in (
            ("gradients to the host", out - out_before, passes * stepped),
            ("parameters to the device", back - back_before, stepped),
        ):
            if got != due:
                return f"in step {step} {got:,} bytes were copied for the {what}, expected {due:,}"
    return None


@given(as_adamw)
def gradients_leave_at_once(run: Run) -> str | None:
    """The copy of a gradient begins before the backward pass comes to the next layer, and nobody waits for it there."""
    backward, _ = run.reports[0].events
    waiting = None  # the layer whose gradient is complete and has not left
    for kind, numel, *_ in backward:
        if kind == "backward":
            if waiting is not None:
                return f"the backward pass went on while the gradient of {waiting} numbers had not begun to leave"
            waiting = numel
        elif kind == "to_host":
            if numel != waiting:
                return f"a copy of {numel} numbers to the host began where the gradient of {waiting} was complete"
            waiting = None
        elif kind == "wait to_host":
            return f"the backward pass waited for the copy of {numel} numbers: the device does nothing meanwhile"
    if waiting is not None:
        return f"after the backward pass the gradient of {waiting} numbers had not begun to leave"
    return None


@given(gradients_leave_at_once)
def few_gradients_are_on_the_device(run: Run) -> str | None:
    """During the backward pass the device holds the parameters and at most three gradients."""
    sizes, peak = _bytes(run), run.reports[0].peak
    if peak > sum(sizes) + 3 * max(sizes):
        return (
            f"in the backward pass the device held {peak:,} bytes, with parameters of {sum(sizes):,} and a largest "
            f"gradient of {max(sizes):,}: gradients stayed after they were copied"
        )
    return None


@given(as_adamw)
def steps_while_copies_go_on(run: Run) -> str | None:
    """One vector is stepped after another: the copy of the one before goes back meanwhile, the gradients after come."""
    backward, events = run.reports[0].events
    sizes = run.option("sizes", host_tier.SIZES)
    stepped = [place for place, event in enumerate(events) if event[0] == "step"]
    done = [numel for kind, numel, *_ in backward if kind == "backward"][-len(sizes) :]
    for place in stepped:
        if events[place][1] not in sizes:
            return f"one step of the optimizer stepped {events[place][1]:,} numbers; step one vector at a time"
    for place, numel in zip(stepped, done, strict=False):
        if events[place][1] != numel:
            return (
                f"the vector of {events[place][1]} numbers was stepped before that of {numel}, with which the backward "
                "pass was done earlier"
            )
    for place, after in zip(stepped, stepped[1:], strict=False):
        numel = events[place][1]
        if ["to_device", numel] not in [event[:2] for event in events[place:after]]:
            return (
                f"when the vector of {events[after][1]} numbers was stepped, the copy of the one before, of {numel} "
                "numbers, had not begun"
            )
    for kind, numel, *_ in events[: stepped[-1]]:
        if kind == "wait to_device":
            return f"the copy of {numel} numbers to the device was waited for before all vectors were stepped"
    waits = [place for place, event in enumerate(events) if event[0] == "wait to_host"]
    if len(stepped) > 1 and waits and waits[-1] < stepped[0]:
        return "all gradients were waited for before the first vector was stepped"
    return _each_is_waited_for([*backward, *events], [events[place][1] for place in stepped])


def _each_is_waited_for(events, stepped):
    """Why a gradient is not waited for just before its vector is stepped, or a vector that comes back not at all."""
    waited: list[int] = []  # the sizes of gradients
    for kind, numel, *_ in events:
        if kind == "wait to_host":
            waited.append(numel)
        if kind != "step":
            continue
        if numel not in waited:
            return f"the vector of {numel} numbers was stepped, and nobody had waited for its gradient"
        for after in stepped[stepped.index(numel) + 1 :]:
            if after in waited:
                return f"the gradient of {after} numbers was waited for before the vector of {numel} was stepped"
    for numel in stepped:
        if ["wait to_device", numel] not in [event[:2] for event in events]:
            return f"nobody waited for the vector of {numel} numbers that comes back"
    return None


def _bytes(run):
    """Of each parameter, and of its gradient."""
    sizes = run.option("sizes", host_tier.SIZES)
    kinds = host_tier.types(sizes, run.option("fp32", ()))
    return [size * kind.itemsize for size, kind in zip(sizes, kinds, strict=True)]
