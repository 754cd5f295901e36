"""Lab 10: the simulated clock beside what is predicted, the library beside the plan, and the two memories alone."""

import re

import pytest
import torch

from ringzero.collectives.formats import Blocks
from ringzero.costs import offload as costs
from ringzero.costs.tiers import tier_bytes
from ringzero_course.lab.claims.order import END, out_of_order
from ringzero_course.lab.runs import Case, Run
from ringzero_course.lab.subjects import offload, quantised
from ringzero_course.lab.tiers import Tiers
from tests.live_notebook import text_of

LAB = "10_offload"


def numbers_in(text):
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text.replace(",", ""))]


def test_overlap_leaves_the_step_and_one_copy(reference):
    lines = text_of(reference.cell_with("def one_step(")).splitlines()
    (_, plain), (_, overlapped), (out, step, back), (all_three,) = [numbers_in(line) for line in lines if " s" in line]
    assert plain == pytest.approx(out + step + back) == pytest.approx(all_three)
    assert step < overlapped < step + 0.2


def test_steps_are_drawn(reference):
    data = reference.cell_with("lambda i: draw_one_step(").outputs[-1].data
    assert data["text/plain"].startswith("step of HostAdam: <figure: Two memories.")
    assert "device computes: 7, 6, 5, 4" in data["text/plain"]


def test_the_clock_is_as_predicted(reference):
    """A forward pass takes what ``window_seconds`` says, and ``smallest_window`` finds the first that is fastest."""
    _, seconds, found = text_of(reference.cell_with("def forward_passes(")).splitlines()[:3]
    sizes = offload.sizes_of(offload.WIDTHS)
    copies = [4 * size / offload.WINDOW_BYTES_PER_SECOND for size in sizes]
    computes = [size / offload.FORWARDS_PER_SECOND for size in sizes]
    expected = [costs.window_seconds(copies, computes, k) for k in range(1, len(sizes) + 1)]
    assert numbers_in(seconds) == pytest.approx(expected, abs=6e-4)
    k, took = numbers_in(found)
    assert took == pytest.approx(expected[int(k) - 1], abs=6e-4) == pytest.approx(min(expected), abs=6e-4)


def test_only_quantised_masters_stop_training(reference):
    lines = text_of(reference.cell_with("WAYS = {")).splitlines()
    exact, weights, gradients, masters = [numbers_in(line)[-1] for line in lines if "squared error" in line]
    assert weights < 1.1 * exact
    assert gradients < 1.1 * exact
    assert masters > 2 * exact


def test_the_library_holds_what_is_planned(reference):
    shown = text_of(reference.cell_with("def held_by_the_library("))
    pairs = re.findall(r"(?:device|host) ([\d,]+)(?: bytes)?, yours ([\d,]+)", shown)
    assert len(pairs) == 4
    assert all(measured == planned for measured, planned in pairs)


def test_what_the_lab_says_of_the_link(reference):
    shown = text_of(reference.cell_with("def try_the_link("))
    assert "device 200 bytes, host 200 bytes, 0.2 s" in shown
    assert "one in host memory" in shown
    assert "both are there at 0.4 s" in shown


# The two memories, without a kernel.


def test_operations_work_in_one_memory():
    with Tiers() as tiers:
        x, y = tiers.on_device(torch.ones(3)), torch.ones(3)
        with pytest.raises(RuntimeError, match="add was given a tensor in device memory and one in host memory"):
            x + y
        assert tiers.tier_of(x * torch.tensor(2.0)) == "device"  # no dimension: goes with both
        assert tiers.tier_of(torch.zeros_like(x)) == "device"
        assert tiers.tier_of(y.view(1, 3)) == "host"
        with pytest.raises(RuntimeError, match="in the device's memory already"):
            tiers.link.to_device(x)
    assert torch.equal(x + y, torch.full((3,), 2.0))  # outside, all is one memory


def test_every_byte_is_counted_until_nothing_refers_to_it():
    with Tiers() as tiers:
        x = tiers.on_device(torch.ones(100))
        tiers.start_peaks()
        y = x + 1
        z = y[:10]
        assert tiers.held["device"] == tiers.peak["device"] == 800
        del y
        assert tiers.held["device"] == 800  # z is a view
        del z
        assert tiers.held == {"device": 400, "host": 0}
        assert tiers.peak["device"] == 800
        back = tiers.link.to_host(x.bfloat16())
        assert (back.dtype, tiers.link.bytes_to_host) == (torch.bfloat16, 200)
        assert tiers.held == {"device": 400, "host": 200}


def test_copies_of_one_direction_follow_each_other():
    with Tiers(bytes_per_second=100) as tiers:
        x, y = torch.ones(25), tiers.on_device(torch.ones(50))
        first, second, other = (
            tiers.link.start_to_device(x),
            tiers.link.start_to_device(x.clone()),
            tiers.link.start_to_host(y),
        )
        tiers.compute("forward", 1, 0.5)
        assert tiers.arrived == tiers.most_arrived == 2
        first.wait()
        assert (tiers.now, tiers.arrived) == (1.0, 1)  # what wait returned is gone
        second.wait(), other.wait()
        assert tiers.now == 2.0
        with pytest.raises(RuntimeError, match="was waited for before"):
            first.wait()


def test_what_is_copied_may_not_change_and_is_kept_until_the_copy_ends():
    with Tiers(bytes_per_second=100) as tiers:
        x = tiers.on_device(torch.ones(25))
        copy = tiers.link.start_to_host(x)
        x += 1
        with pytest.raises(RuntimeError, match="changed while it was copied"):
            copy.wait()
        copy = tiers.link.start_to_host(x)
        del x
        assert tiers.held["device"] == 100
        assert torch.equal(copy.wait(), torch.full((25,), 2.0))
        assert tiers.held["device"] == 0


# What the claims compare with.


def test_planned_bytes_are_the_librarys():
    for states, parameters in (("device", "device"), ("host", "device"), ("host", "host")):
        for precision, each in (("mixed", (2, 2, 12)), ("fp32", (4, 4, 8))):
            planned = offload.bytes_by_tier(6000, 3, 100, states, parameters, precision)
            assert planned == tier_bytes(2000, states, parameters, each, resident=100)
    assert offload.bytes_by_tier(6000, 3, 100, "file", "host") == (200, 8000, 24000)
    assert offload.bytes_by_tier(6000, 3, 100, "file", "file", "fp32") == (400, 8000, 24000)


def test_alone_is_adamw_in_one_memory():
    case = offload.Training(seed=1, sizes=(5,), fp32=(0,), steps=2)
    p = torch.nn.Parameter(case.start(0))
    optimizer = torch.optim.AdamW([p], **offload.ADAMW)
    for step in (1, 2):
        (p.grad,) = case.gradients(0, step)
        optimizer.step()
    run = Run(Case(1, None, torch.float32, (), {"seed": 1, "sizes": (5,), "fp32": (0,), "steps": 2}))
    assert torch.equal(p.detach(), offload.alone(run, 0)["parameters"]["parameter 0"])


def test_none_of_adamws_options_is_its_default():
    defaults = torch.optim.AdamW([torch.zeros(1)]).defaults
    assert all(defaults[name] != value for name, value in offload.ADAMW.items())


def test_gradients_of_a_layer_are_autograds():
    (vector, *_), x, _ = offload.vectors_of(3, (4, 5))
    vector.requires_grad_(), x.requires_grad_()
    gradient = offload.numbers((2, 5), 1)
    offload.output_of(vector, x).backward(gradient)
    of_x, of_vector = offload.gradients_of(vector.detach(), x.detach(), gradient)
    torch.testing.assert_close(of_x, x.grad)
    torch.testing.assert_close(of_vector, vector.grad)


@pytest.mark.parametrize(("size", "block"), [(300, 64), (7, 3), (0, 4)])
def test_the_librarys_int8_is_within_half_a_step(size, block):
    x, format = quantised.values_of("scales", size, seed=1), Blocks(8, block)
    if size:
        off = (format.decode(format.encode(x), size).double() - x).abs()
        assert (off <= quantised.half_steps(x, block) * 1.0001).all()


def test_events_out_of_order_are_named():
    events, sizes = [("to_host", 8, 0.0, 1.0), ("backward", 9, 1.0, 2.0)], (9, 8)
    first, then, never = ("to_host", 8), ("backward", 9), ("wait to_host", 8)
    assert out_of_order(events, [(first, then), (first, END), (first, never)], sizes) is None
    assert out_of_order(events, [(then, first)], sizes) == (
        "the copy of layer 1 to the host came before the backward pass of layer 0"
    )
    assert out_of_order(events, [(never, then)], sizes) == (
        "the backward pass of layer 0 came before waiting for the copy of layer 1 to the host"
    )
    assert out_of_order(events, [(never, END)], sizes) == "waiting for the copy of layer 1 to the host never came"
