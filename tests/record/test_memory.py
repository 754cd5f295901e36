"""Measured bytes of a training step: against the formulas, against autograd's own hooks, and to the byte by hand."""

import gc
import re
import threading
import xml.etree.ElementTree as ET

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import ringzero
from ringzero.costs.page import memory as mem
from ringzero.record import memory
from ringzero.record.memory import KINDS, History, MemoryTimeline
from ringzero_course import figures
from tests.small_transformers import Block, Gpt, kept_for_backward, params

BATCH, SEQUENCE, HIDDEN, HEADS = 2, 48, 64, 4
TOKENS = BATCH * SEQUENCE


@pytest.fixture(autouse=True)
def one_thread():
    """The operations here are so small that threads would only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def gpt():
    torch.manual_seed(0)
    model = Gpt(2, 32, 101, 24, 4, dropout=0.1)
    return model, torch.optim.AdamW(model.parameters()), torch.randint(101, (2, 24))


def train(model, optimizer, ids, steps=2):
    with MemoryTimeline(model, optimizer) as measured:
        for _ in range(steps):
            loss = model(ids).square().mean()
            measured.mark("forward")
            loss.backward()
            measured.mark("backward")
            optimizer.step()
            measured.mark("step")
            optimizer.zero_grad()
            measured.mark("zero_grad")
    return measured


def forward(block, **input_options):
    """Measure ``block`` on a fresh input, forward and backward."""
    x = torch.randn(BATCH, SEQUENCE, HIDDEN, requires_grad=True, **input_options)
    with MemoryTimeline(block) as measured:
        y = block(x)
        measured.mark("forward")
        y.sum().backward()
        measured.mark("backward")
    return measured


def test_model_states_to_the_byte():
    model, optimizer, ids = gpt()
    measured = train(model, optimizer, ids)
    size, tensors = 4 * params(model), len(list(model.parameters()))
    states = mem.torch_optimizer_bytes(params(model), tensors, "adamw")
    for mark, gradients in {"forward": 0, "backward": size, "step": size, "zero_grad": 0}.items():
        held = measured.at(mark)
        assert (held["parameters"], held["gradients"], held["optimizer"]) == (size, gradients, states)
        assert held["buckets"] == 0
    assert measured.at("zero_grad")["activations"] == 0


def test_the_first_step_has_no_states_and_peaks_lower():
    model, optimizer, ids = gpt()
    first, second = train(model, optimizer, ids, steps=1), train(model, optimizer, ids, steps=1)
    states = second.at("forward")["optimizer"]
    assert first.at("backward")["optimizer"] == 0
    assert first.at("step")["optimizer"] == states > 0
    assert second.peak().total == pytest.approx(first.peak().total + states, rel=0.1)


def test_mixed_precision_to_the_byte():
    """16-bit weights and gradients in the module, fp32 copies and moments in the optimizer: 2 + 2 + 12."""
    model, _, ids = gpt()
    model.to(torch.bfloat16)
    weights = list(model.parameters())
    copies = [p.detach().float() for p in weights]
    optimizer = torch.optim.Adam(copies)
    with MemoryTimeline(model, optimizer) as measured:
        model(ids).float().square().mean().backward()
        for copy, p in zip(copies, weights, strict=True):
            copy.grad = p.grad.float()
        optimizer.step()
        measured.mark("fp32 gradients too")
        optimizer.zero_grad()
        measured.mark("step")
    steps, size = 4 * len(weights), params(model)
    parts = mem.model_state_parts(size, each=mem.bytes_per_param("adam"))
    held = measured.at("step")
    assert (held["parameters"], held["gradients"], held["optimizer"] - steps) == parts
    assert measured.at("fp32 gradients too")["gradients"] == 6 * size


VARIANTS = {
    "dropout": ({"dropout": 0.1}, {}),
    "no dropout": ({}, {"dropout": False}),
    "attention recomputed": ({"dropout": 0.1, "attention": "recomputed"}, {"recomputation": "selective"}),
    "flash": ({"dropout": 0.1, "attention": "flash"}, {"flash_attention": True}),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("variant", VARIANTS)
def test_activations_of_a_layer_are_the_formula_s(variant, dtype):
    """A CPU's mask has its input's dtype. The formula leaves out a mean and a deviation a token of two LayerNorms."""
    options, formula = VARIANTS[variant]
    size = dtype.itemsize
    block = Block(HIDDEN, HEADS, **options).to(dtype)
    held = forward(block, dtype=dtype).at("forward")
    predicted = mem.activation_bytes(
        TOKENS, SEQUENCE, HIDDEN, HEADS, bytes_per_element=size, mask_bytes=size, **formula
    )
    assert held["activations"] == pytest.approx(predicted, rel=0.02)
    assert held["activations"] == predicted + 2 * 2 * TOKENS * size
    x = torch.randn(BATCH, SEQUENCE, HIDDEN, dtype=dtype, requires_grad=True)
    assert held["activations"] == kept_for_backward(block, x)


def test_backward_lets_go_of_all_activations():
    measured = forward(Block(HIDDEN, HEADS, dropout=0.1))
    assert measured.at("backward")["activations"] == 0
    assert measured.at("backward")["gradients"] == measured.at("backward")["parameters"]


def test_recomputation_lowers_activations_and_the_peak():
    blocks = nn.Sequential(*[Block(HIDDEN, HEADS, dropout=0.1) for _ in range(4)])

    class Recomputed(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = blocks

        def forward(self, x):
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False)
            return x

    stored, recomputed = forward(blocks), forward(Recomputed())
    inputs = mem.activation_bytes(TOKENS, SEQUENCE, HIDDEN, HEADS, 4, bytes_per_element=4, recomputation="full")
    assert recomputed.at("forward")["activations"] == inputs
    assert recomputed.peak().total < 0.7 * stored.peak().total
    assert stored.peak("activations").phase == "forward"


def test_freed_storages_leave_the_count():
    with MemoryTimeline(nn.Linear(1, 1, bias=False)) as measured:
        x = torch.zeros(1000)
        measured.mark("held")
        del x
        measured.mark("gone")
        torch.zeros(500)
        measured.mark("never bound")
    assert [measured.at(mark)["other"] for mark in ("held", "gone", "never bound")] == [4000, 0, 0]
    assert measured.peak().total == 4004
    assert measured.peak("other").phase == "held"


def test_views_in_place_and_tied_count_once():
    tied = nn.Sequential(nn.Linear(10, 10, bias=False), nn.Linear(10, 10, bias=False))
    tied[1].weight = tied[0].weight
    with MemoryTimeline(tied) as measured:
        x = torch.zeros(100)
        view, also = x[10:20], x.view(10, 10).t()
        x.add_(1).mul_(2)
        torch.add(x, 1, out=x)
        measured.mark("views")
        del x, view
        measured.mark("one view left")
        del also
        measured.mark("none left")
    assert measured.at("views")["parameters"] == 400
    assert [measured.at(mark)["other"] for mark in ("views", "one view left", "none left")] == [400, 400, 0]


def test_saved_twice_counts_once_until_the_last_lets_go():
    x = torch.randn(100, requires_grad=True)
    with MemoryTimeline(nn.Linear(1, 1)) as measured:
        y = x * 2
        first, second = y.square().sum(), y.sin().sum()
        measured.mark("saved twice")
        first.backward(retain_graph=False, inputs=[x])
        measured.mark("saved once")
        del second
        gc.collect()
        measured.mark("not saved")
    assert [measured.at(mark)["activations"] for mark in ("saved twice", "saved once", "not saved")] == [400, 400, 0]
    assert measured.at("not saved")["other"] >= y.nbytes, "y is still there, for nobody's backward"


def test_an_output_that_its_own_node_saves_is_let_go():
    x = torch.randn(100, requires_grad=True)
    with MemoryTimeline(nn.Linear(1, 1)) as measured:
        y = x.exp()
        measured.mark("held")
        del y
        measured.mark("gone")
    assert measured.at("held")["activations"] == 400
    assert (measured.at("held")["other"], measured.at("gone")["other"]) == (x.nbytes, x.nbytes)
    assert measured.at("gone")["activations"] == 0


def test_gradients_are_right_while_measured():
    """What autograd gets back is what it saved, second derivatives too."""
    torch.manual_seed(1)
    block, x = Block(HIDDEN, HEADS), torch.randn(1, 4, HIDDEN, requires_grad=True)

    def both():
        (first,) = torch.autograd.grad(block(x).sin().sum(), x, create_graph=True)
        return [first, *torch.autograd.grad(first.square().sum(), [x, *block.parameters()])]

    expected = both()
    with MemoryTimeline(block):
        got = both()
    assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))


def test_accumulated_gradients_are_one():
    model = nn.Linear(10, 10)
    with MemoryTimeline(model) as measured:
        for _ in range(3):
            model(torch.ones(2, 10)).sum().backward()
            measured.mark("backward")
    assert measured.at("backward")["gradients"] == 440


def test_gradients_taken_away_in_mid_backward():
    """As ZeRO-2 does it: each gradient goes to a shard as soon as it is there."""
    model = nn.Sequential(*[nn.Linear(100, 100, bias=False) for _ in range(5)])
    shards = [torch.zeros(50, 100) for _ in model]

    def shard(parameter):
        index = next(i for i, layer in enumerate(model) if layer.weight is parameter)
        shards[index].add_(parameter.grad[:50])
        parameter.grad = None

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(shard)
    with MemoryTimeline(model) as measured:
        for tensor in shards:
            measured.label(tensor, "gradients")
        model(torch.ones(2, 100, requires_grad=True)).sum().backward()
        measured.mark("backward")
    assert measured.at("backward")["gradients"] == 5 * 20_000
    assert measured.peak("gradients")["gradients"] == 5 * 20_000 + 40_000, "one whole gradient at a time"


def test_labels_of_the_caller_win():
    """Gradients that are views of a bucket, as DDP has them: the bucket, once."""
    model = nn.Linear(10, 10)
    bucket = torch.zeros(110)
    with MemoryTimeline(model) as measured:
        memory.label(bucket, "buckets")
        for p, at in zip(model.parameters(), (0, 100), strict=True):
            p.grad = bucket[at : at + p.numel()].view_as(p)
        model(torch.ones(2, 10)).sum().backward()
        measured.mark("backward")
    assert (measured.at("backward")["buckets"], measured.at("backward")["gradients"]) == (440, 0)
    memory.label(bucket, "buckets")  # where nothing measures, nothing happens
    with pytest.raises(ValueError, match="kind is 'bucket'; it is one of parameters, gradients"):
        measured.label(bucket, "bucket")


def test_a_label_finds_what_another_thread_allocated():
    held = []

    def gather():
        held.append(torch.ones(1000))
        held.append(torch.ones(100))
        memory.label(held[0], "buckets")

    with MemoryTimeline(nn.Identity()) as measured:
        thread = threading.Thread(target=gather)
        thread.start()
        thread.join()
        measured.mark("labelled")
        held[1].add_(1)
        measured.mark("used")
        held.clear()
        measured.mark("gone")
    assert [measured.at(mark).total for mark in ("labelled", "used", "gone")] == [4000, 4400, 0]


def test_parameters_gathered_and_given_back():
    """As ZeRO-3 has it: a full parameter lives in its storage only while it is used."""
    layer, shard = nn.Linear(100, 100, bias=False), torch.zeros(50, 100)
    layer.weight.data = shard
    with MemoryTimeline(layer) as measured:
        layer.weight.data = torch.cat([shard, shard])
        with torch.no_grad():
            layer(torch.ones(1, 100))
        layer.weight.data = shard
        measured.mark("given back")
        storage = torch.zeros(1000).untyped_storage()
        full = torch.empty(0).set_(storage, 0, (1000,))
        measured.mark("made")
        storage.resize_(0)
        measured.mark("freed in place")
        storage.resize_(2000)
        measured.mark("made again")
    assert measured.peak("parameters")["parameters"] == 60_000
    assert measured.at("given back")["parameters"] == 20_000
    before = measured.at("given back")["other"]
    assert [measured.at(m)["other"] - before for m in ("made", "freed in place", "made again")] == [4000, 0, 2000]
    assert full.untyped_storage().nbytes() == 2000


def test_only_the_device_asked_for():
    model = nn.Linear(10, 10, device="meta")
    with MemoryTimeline(model, device="cpu") as measured:
        torch.zeros(10, device="meta").add_(model.weight[0])
        kept = torch.zeros(10)
        measured.mark("made")
    assert measured.at("made").total == kept.nbytes


def test_same_twice_and_nothing_stays_behind():
    model, optimizer, ids = gpt()
    inherited = "resize_" not in vars(torch.UntypedStorage)
    resize = torch.UntypedStorage.resize_
    train(model, optimizer, ids, steps=1)
    first, second = train(model, optimizer, ids), train(model, optimizer, ids)
    assert first.history().bytes == second.history().bytes
    assert repr(first) == repr(second)
    assert memory._running == []
    assert torch.UntypedStorage.resize_ is resize
    assert inherited == ("resize_" not in vars(torch.UntypedStorage))
    assert all(not p._backward_hooks for p in model.parameters())
    assert kept_for_backward(model, ids) > 0, "no hook of ours is on"
    with first:
        first.mark("again")
    assert [name for name, _ in first.history().marks] == ["again"]


def test_an_error_inside_ends_it():
    model = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), MemoryTimeline(model):
        model(torch.ones(1, 3))
    assert memory._running == []


def test_table():
    model, optimizer, ids = gpt()
    measured = train(model, optimizer, ids, steps=1)
    head, rows = measured.table()
    assert head == ["bytes", "forward", "backward", "step", "zero_grad", "peak, in backward"]
    assert [row[0] for row in rows] == [*KINDS, "all"]
    for column in range(1, len(head)):
        assert sum(row[column] for row in rows[:-1]) == rows[-1][column]
    assert rows[-1][-1] == measured.peak().total == max(measured.history().totals)
    assert f"{measured.peak().total:,}" in repr(measured)
    with pytest.raises(ValueError, match="no mark 'update'; there is forward, backward"):
        measured.at("update")


def fully_sharded(hidden):
    """What a rank holds of an FSDP2 model: its part of the parameters, and of their gradients after a backward pass."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = nn.Sequential(nn.Linear(hidden, hidden), nn.Linear(hidden, hidden))
    mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    with MemoryTimeline(model) as measured:
        loss = model(torch.ones(2, hidden)).sum()
        measured.mark("forward")
        loss.backward()
        measured.mark("backward")
    return {mark: measured.at(mark).bytes for mark in ("forward", "backward")}


@pytest.mark.parametrize("world_size", [2, 3])
def test_fsdp2_holds_a_share(world_size):
    """Torch's own sharding, whose parameters are DTensors: an Nth of the bytes, padded to whole rows."""
    hidden = 64
    rows = -(-hidden // world_size)
    share = 2 * 4 * (rows * hidden + rows)
    for held in ringzero.launch(fully_sharded, hidden, world_size=world_size, device="cpu").returns:
        assert held["backward"]["parameters"] == pytest.approx(share, rel=0.05)
        assert held["backward"]["gradients"] == pytest.approx(share, rel=0.05)


SVG = "{http://www.w3.org/2000/svg}"


def svg_of(figure):
    return ET.fromstring(re.search(r"<svg.*?</svg>", figure.html, re.DOTALL).group())


def test_figure_shows_kinds_marks_and_the_peak():
    measured = train(*gpt())
    figure = figures.memory_timeline(measured.history(), caption="Two steps.")
    svg = svg_of(figure)
    kinds = ["parameters", "gradients", "optimizer", "activations", "other"]
    areas = [path.get("class") for path in svg.iter(f"{SVG}path")]
    assert areas == kinds[::-1], "the lowest is drawn last, on top of those that go down behind it"
    names = [text.text for text in svg.iter(f"{SVG}text") if text.get("class") == "kind"]
    assert names == kinds
    lines = [line for line in svg.iter(f"{SVG}line") if line.get("class") == "phase"]
    assert len(lines) == 8
    assert f"{measured.peak().total / 1e3:.3g} kB" in figure.alt
    tops = [float(y) for y in re.findall(r"V([\d.]+)", next(svg.iter(f"{SVG}path")).get("d"))]
    assert min(tops) == pytest.approx(34, abs=0.1), "the peak reaches the top"
    assert figure.html == figures.memory_timeline(train(*gpt()).history(), caption="Two steps.").html


def test_names_of_phases_that_are_near_stand_on_two_lines():
    marks = [("backward", 60), ("step", 100), ("forward", 110)]
    history = History({"parameters": [4] * 200}, (0.0,) * 200, tuple(marks))
    texts = svg_of(figures.memory_timeline(history)).iter(f"{SVG}text")
    heights = {text.text: float(text.get("y")) for text in texts if text.text in dict(marks)}
    assert heights["backward"] == heights["step"] > heights["forward"]


def test_two_figures_on_one_scale():
    measured = forward(Block(HIDDEN, HEADS))
    twice = figures.memory_timeline(measured.history(), most=2 * measured.peak().total)
    tops = [float(y) for path in svg_of(twice).iter(f"{SVG}path") for y in re.findall(r"V([\d.]+)", path.get("d"))]
    assert min(tops) == pytest.approx(34 + 260 / 2, abs=0.1)


def test_nothing_to_draw():
    with MemoryTimeline(nn.Identity()) as measured:
        pass
    with pytest.raises(ValueError, match="the history is empty"):
        figures.memory_timeline(measured.history())
