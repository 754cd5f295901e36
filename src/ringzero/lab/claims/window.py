"""Claims about a run of ``harness.window``: the right values, with few layers on the device, copied beside the work."""

from collections.abc import Callable

import torch

from ringzero.costs import offload
from ringzero.lab.claims.collectives import given
from ringzero.lab.claims.values import close
from ringzero.lab.harness import window
from ringzero.lab.runs import Claim


def smallest(copies: list[float], computes: list[float]) -> tuple[int, float]:
    """What ``smallest_window`` of the lab is to give: the smallest window that loses no time, and the seconds."""
    seconds = [offload.window_seconds(copies, computes, k) for k in range(1, len(copies) + 1)]
    best = seconds[-1] * (1 + 1e-12)
    return next((k, took) for k, took in enumerate(seconds, 1) if took <= best)


def gives_the_same(*what: str) -> Claim:
    """A claim: these are what they are in one memory, and the vectors in host memory stay."""

    def claim(run):
        report, right = run.reports[0], window.alone(run.option("seed"), _widths(run))
        for name in what:
            got, expected = getattr(report, name), right[name]
            several = isinstance(expected, list)
            if several and len(got) != len(expected):
                return f"there are {len(got)} {name}, expected one for each of the {len(expected)} layers"
            pairs = zip(got, expected, strict=True) if several else [(got, expected)]
            for i, (mine, value) in enumerate(pairs):
                place = f"{name}[{i}]" if several else f"the {name}"
                if why := close(place, [torch.tensor(mine)], [value], 1e-4):
                    return why.removeprefix("on rank 0 ")
        return None if report.kept else "the vectors in host memory were changed; they are the parameters"

    return claim


forward_is_right = gives_the_same("output", "inputs")
backward_is_right = gives_the_same("gradient", "gradients")


def _of(name: str, check: Callable) -> Claim:
    """A claim about one pass: ``check(run, what was noted of it, the layers in its order)``; its values are right."""

    @given(forward_is_right if name == "forward" else backward_is_right)
    def claim(run):
        layers = list(range(len(_widths(run)) - 1))
        return check(run, run.reports[0].__dict__[name] | {"pass": name}, layers if name == "forward" else layers[::-1])

    return claim


def _in_the_window(run, noted, order):
    k, sizes = run.option("k"), window.sizes_of(_widths(run))
    most = min(k, len(sizes))
    if noted["most"] > most:
        return f"{noted['most']} layers were on the device at one time; the window is {k}"
    if noted["left"]:
        return f"after the pass the device still holds {noted['left']} of the layers that were copied"
    activations = 4 * 2 * (sum(_widths(run)) + 6 * max(_widths(run)))
    gradients = 0 if noted["pass"] == "forward" else 3  # on their way to the host
    due = 4 * (most + gradients) * max(sizes) + activations
    if noted["more"] > due:
        return (
            f"the device held {noted['more']:,} bytes more than before the pass, {noted['more'] / 4 / max(sizes):.1f} "
            f"layers; the window is {k}"
        )
    return None


def _copied_once(run, noted, order):
    sizes = window.sizes_of(_widths(run))
    copied = [
        sizes.index(numel) if numel in sizes else -1 for kind, numel, *_ in noted["events"] if kind == "to_device"
    ]
    if copied == order:
        return _computed_once(run, noted, order)
    for i in order:
        if copied.count(i) != 1:
            return f"layer {i} was copied to the device {copied.count(i)} times, expected once"
    if -1 in copied:
        return "a copy to the device is no whole layer"
    return f"layers were copied in the order {copied}, and are needed in the order {order}"


def _computed_once(run, noted, order):
    """Why a layer is not computed once, after somebody waited for its copy."""
    sizes = window.sizes_of(_widths(run))
    names = [(kind, numel) for kind, numel, *_ in noted["events"]]
    for i in order:
        if (times := names.count((noted["pass"], sizes[i]))) != 1:
            return f"layer {i} was computed {times} times, expected once"
        if ("wait to_device", sizes[i]) not in names[: names.index((noted["pass"], sizes[i]))]:
            return f"layer {i} was computed, and nobody had waited for its copy"
    return None


def _beside_the_work(run, noted, order):
    sizes, k = window.sizes_of(_widths(run)), run.option("k")
    names = [(kind, numel) for kind, numel, *_ in noted["events"]]
    works = {numel: place for place, (kind, numel) in enumerate(names) if kind in ("forward", "backward")}
    for place, i in enumerate(order):
        begun = works[sizes[i]]
        for after in order[place + 1 : place + k]:
            if ("to_device", sizes[after]) not in names[:begun]:
                return (
                    f"when layer {i} was computed, the copy of layer {after} had not begun; the window of {k} "
                    "has room for it"
                )
        for after in order[place + 1 :]:
            if ("wait to_device", sizes[after]) in names[:begun]:
                return f"the copy of layer {after} was waited for before layer {i} was computed"
    return None


def _gradients_leave(run, noted, order):
    sizes = window.sizes_of(_widths(run))
    names = [(kind, numel) for kind, numel, *_ in noted["events"]]
    left = sorted(numel for kind, numel in names if kind == "to_host")
    if left != sorted(sizes):
        return f"{len(left)} copies to the host of {sum(left):,} numbers, expected {len(sizes)} of {sum(sizes):,}"
    if "device" in run.reports[0].where:
        return f"the gradient of layer {run.reports[0].where.index('device')} that was returned is in device memory"
    for i, after in zip(order, order[1:], strict=False):
        begun = names.index(("backward", sizes[after]))
        if ("to_host", sizes[i]) not in names[:begun]:
            return f"when layer {after} was computed, the gradient of layer {i} had not begun to leave"
        if ("wait to_host", sizes[i]) in names[:begun]:
            return f"the copy of the gradient of layer {i} was waited for before layer {after} was computed"
    for i in order:
        if ("wait to_host", sizes[i]) not in names:
            return f"nobody waited for the copy of the gradient of layer {i}"
    return None


def _widths(run):
    return run.option("widths", window.WIDTHS)


forward_stays_in_the_window = _of("forward", _in_the_window)
forward_copies_once = _of("forward", _copied_once)
forward_copies_beside_the_work = _of("forward", _beside_the_work)
backward_stays_in_the_window = _of("backward", _in_the_window)
backward_copies_once = _of("backward", _copied_once)
backward_copies_beside_the_work = _of("backward", _beside_the_work)
gradients_leave_at_once = _of("backward", _gradients_leave)
