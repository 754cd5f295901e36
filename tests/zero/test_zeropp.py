"""Two levels of ranks, and fewer bits on the wire: values, errors, and bytes between nodes."""

import contextlib

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from ringzero import launch
from ringzero.collectives.formats import Blocks, Float
from ringzero.costs import two_level
from ringzero.record import recorded
from ringzero.zero import STAGES, GradScaler, Host, Hybrid, ZeroPlusPlus, ZeroStage3, load, save
from ringzero.zero.two_level import levels
from tests import awkward
from tests.zero.test_zero import STEPS, alone, close, sharded, step_sharded

# ---- formats


@settings(deadline=None)
@given(
    numel=st.integers(0, 600),
    bits=st.sampled_from([8, 4]),
    block=st.sampled_from([2, 16, 256]),
    scale=st.sampled_from([0.0, 1e-30, 1.0, 1e30]),
    seed=st.integers(0, 9),
)
def test_a_number_is_off_by_half_a_step_of_its_block_at_most(numel, bits, block, scale, seed):
    torch.manual_seed(seed)
    values = torch.randn(numel) * scale
    format = Blocks(bits, block)
    wire = format.encode(values)
    assert wire.dtype == torch.uint8
    assert wire.numel() == format.bytes(numel) == -(-numel // block) * 4 + -(-numel * bits // 8)
    if numel:
        assert wire.numel() == two_level.payload_bytes(numel, f"int{bits}", block)
    got = format.decode(torch.cat([wire, wire.new_zeros(5)]), numel)  # what follows is not looked at
    for begin in range(0, numel, block):
        part, decoded = values[begin : begin + block], got[begin : begin + block]
        step = part.abs().max() / (2 ** (bits - 1) - 1)
        assert (decoded - part).abs().max() <= step * 0.50001
        largest = part.abs().argmax()
        torch.testing.assert_close(decoded[largest], part[largest])  # the largest has no error but rounding


@pytest.mark.parametrize("bits", [8, 4])
def test_an_overflow_stays_one_in_its_block_alone(bits):
    values = torch.ones(300)
    values[3], values[270] = torch.inf, torch.nan
    got = Blocks(bits, 64).decode(Blocks(bits, 64).encode(values), 300)
    assert not got[:64].isfinite().any()
    assert (got[64:256] == 1).all()
    assert not got[256:].isfinite().any()


def test_floats_are_rounded_as_torch_rounds_them():
    values = torch.randn(77)
    format = Float(torch.bfloat16)
    assert torch.equal(format.decode(format.encode(values), 77), values.bfloat16().float())
    assert format.bytes(77) == two_level.payload_bytes(77, "bf16")


# ---- training


RUNS = [  # stage, model, how vectors travel
    *((3, name, "nodes") for name in awkward.MODELS),
    *((stage, "OddSizes", "nodes") for stage in (1, 2)),
    *((3, name, "second shards") for name in ("Tied", "Unused")),
]


def every_model():
    results = {}
    for stage, name, how in RUNS:
        travel = Hybrid(2) if how == "nodes" else ZeroPlusPlus(None, None, True, 2)
        model = sharded(stage, name, travel=travel)
        norms = [step_sharded(model, step) for step in range(STEPS)]
        results[stage, name, how] = model.state_dict(), norms
    return results


def test_two_levels_train_as_one_process_on_the_whole_batch():
    """As stage 3 does: within rounding of one process, and bit for bit on all ranks."""
    ranks = launch(every_model, world_size=4, timeout=300).returns
    for run, (state, norms) in ranks[0].items():
        expected, expected_norms = alone(run[1])
        close(dict(state), dict(expected), msg=str(run))
        close(torch.tensor(norms).float(), torch.tensor(expected_norms).float())
        for other in ranks[1:]:
            assert all(torch.equal(other[run][0][key], state[key]) for key in state)


def in_whole_numbers(policies):
    """Two steps of SGD whose every sum is exact. Which policies differ from flat stage 3 in a bit."""
    results = {}
    for policy in [None, *policies]:
        torch.manual_seed(0)
        module = nn.Sequential(*(nn.Linear(12, 12, bias=False) for _ in range(3)))
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.copy_(torch.randint(-2, 3, parameter.shape))
        travel = None if policy is None else policy()
        model = ZeroStage3(module, torch.optim.SGD, lr=0.5, units=list(module), travel=travel)
        for step in range(2):
            torch.manual_seed(10 * step + dist.get_rank())
            (model(torch.randint(-2, 3, (4, 12)).float()).sum() * dist.get_world_size()).backward()
            model.step()
            model.zero_grad()
        results[str(policy)] = torch.cat([value.reshape(-1) for value in model.state_dict().values()])
    first = results.pop("None")
    return [name for name, value in results.items() if not torch.equal(value, first)]


def test_where_sums_are_exact_two_levels_change_no_bit():
    policies = [lambda: Hybrid(2), lambda: Hybrid(1), lambda: ZeroPlusPlus(None, None, True, 2)]
    assert launch(in_whole_numbers, policies, world_size=4).returns == [[]] * 4


def losses(travel_of, steps, dtype):
    """A small regression, learned: the mean loss of the ranks in each step."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 8))
    target = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 8)).requires_grad_(False)
    model = ZeroStage3(
        module, torch.optim.AdamW, lr=3e-3, units=[module[0], module[2], module[4]], mixed_precision=dtype,
        travel=travel_of(),
    )  # fmt: skip
    means = []
    for step in range(steps):
        torch.manual_seed(100 * step + dist.get_rank())
        inputs = torch.randn(32, 32)
        loss = (model(inputs).float() - 3 * target(inputs)).square().mean()
        loss.backward()
        model.step()
        model.zero_grad()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        means.append(mean.item() / dist.get_world_size())
    return means


def test_quantised_training_learns_as_plain_training_does():
    """Over 200 steps: the mean loss of the last 50 is within 5 % of stage 3's in bf16."""
    policies = {"plain": (lambda: None, 0), "all": (lambda: ZeroPlusPlus(ranks_per_node=1), 0.05)}
    means = {}
    for name, (travel, _) in policies.items():
        got = launch(losses, travel, 200, torch.bfloat16, world_size=2).returns[0]
        means[name] = sum(got[-50:]) / 50
        assert means[name] < got[0] / 5, name  # it learned
    for name, (_, band) in policies.items():
        assert abs(means[name] / means["plain"] - 1) <= band, means


def reduced_once(bits, block, ranks_per_node):
    """Gradients of one backward pass: the exact mean, the quantised one, and the largest step of any block."""
    rank, n = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    module = nn.Linear(37, 29, bias=False)
    gradient = torch.randn(29, 37)
    total = gradient / n
    dist.all_reduce(total)
    largest = gradient.abs().max() / n
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    model = ZeroStage3(
        module,
        torch.optim.SGD,
        lr=1.0,
        units=[module],
        travel=ZeroPlusPlus(None, f"int{bits}", False, ranks_per_node, block),
    )
    before = model.state_dict()["weight"].clone()
    (model(torch.eye(37)).T * gradient).sum().backward()
    model.step()
    return (before - model.state_dict()["weight"] - total).abs().max().item(), largest.item()


@pytest.mark.parametrize(("world_size", "ranks_per_node"), [(2, 2), (3, 1), (4, 2)])
@pytest.mark.parametrize("bits", [4, 8])
def test_the_error_of_a_reduced_gradient_is_within_its_bound(world_size, ranks_per_node, bits):
    """Half a step of each part that travelled: of G - 1 neighbours, and of the sums of G ranks of P - 1 nodes."""
    nodes, levels_ = world_size // ranks_per_node, 2 ** (bits - 1) - 1
    for error, largest in launch(reduced_once, bits, 64, ranks_per_node, world_size=world_size).returns:
        half = largest / levels_ / 2
        of_node = (ranks_per_node - 1) * half
        across = (nodes - 1) * (ranks_per_node * largest + of_node) / levels_ / 2
        bound = nodes * of_node + across
        assert 0 < error <= bound * 1.001


# ---- bytes


def bytes_by_place(operations, ranks_per_node):
    """Bytes that this rank sent to other nodes, and inside its own."""
    across = inside = 0
    for each in operations:
        if each.kind == "send":
            if each.peer_rank // ranks_per_node != each.rank // ranks_per_node:
                across += each.bytes
            else:
                inside += each.bytes
    return across, inside


def bytes_to_other_nodes(travel, passes=1, quiet=False):
    """This rank's bytes of one step, after one that warmed up: to other nodes of two ranks, and inside its own.

    If it is ``quiet`` all passes but the last are in ``no_sync``.
    """
    torch.manual_seed(0)
    module = nn.Sequential(*(nn.Linear(128, 128, bias=False) for _ in range(3)))
    model = ZeroStage3(
        module, torch.optim.AdamW, lr=0.01, units=list(module), mixed_precision=torch.bfloat16, travel=travel()
    )

    def step():
        for number in range(passes):
            with model.no_sync() if quiet and number < passes - 1 else contextlib.nullcontext():
                model(torch.randn(2, 128)).float().square().mean().backward()
        model.step()
        model.zero_grad()

    step()
    before = len(recorded())
    step()
    return bytes_by_place(recorded()[before:], 2)


POLICIES = {
    "flat": (lambda: None, {}),
    "hybrid": (lambda: Hybrid(2), {"sharding": "hybrid"}),
    "qwZ": (lambda: ZeroPlusPlus("int8", None, False, 2), {"weights": "int8"}),
    "hpZ": (lambda: ZeroPlusPlus(None, None, True, 2), {"secondary": True}),
    "qgZ": (lambda: ZeroPlusPlus(None, "int4", False, 2), {"gradients": "int4"}),
    "ZeRO++": (
        lambda: ZeroPlusPlus(ranks_per_node=2),
        {"weights": "int8", "gradients": "int4", "secondary": True},
    ),
}


def test_bytes_across_and_inside_nodes_are_those_of_the_formula():
    counted = {}
    for name, (travel, options) in POLICIES.items():
        each = launch(bytes_to_other_nodes, travel, world_size=4).returns
        counted[name] = sum(across for across, _ in each)
        per_layer = {"params": 128 * 128, "nodes": 2, "ranks_per_node": 2, **options}
        assert counted[name] == 3 * two_level.cross_node_bytes(**per_layer), name
        assert sum(inside for _, inside in each) == 3 * two_level.inside_node_bytes(**per_layer), name
    assert counted["ZeRO++"] <= 0.26 * counted["flat"]


def test_second_shards_serve_every_gather_until_the_step():
    """Three passes gather six times: once across nodes, five times inside."""
    once, thrice = (
        sum(across for across, _ in launch(bytes_to_other_nodes, POLICIES["hpZ"][0], passes, world_size=4).returns)
        for passes in (1, 3)
    )
    gather, reduction = 3 * (128 * 128 * 2) * 3 / 2, 3 * (128 * 128 * 2) * 3 / 2
    assert once == gather + reduction
    assert thrice == gather + 3 * reduction


def test_of_several_micro_batches_only_the_sum_crosses_between_nodes():
    """Inside nodes each has a share in what travels. Across: of each but the last one number, which says it is well."""
    layer = {"params": 128 * 128, "nodes": 2, "ranks_per_node": 2, "sharding": "hybrid"}
    for passes in (2, 5):
        each = launch(bytes_to_other_nodes, lambda: Hybrid(2), passes, True, world_size=4).returns
        assert sum(across for across, _ in each) == 3 * two_level.cross_node_bytes(**layer) + 4 * 2 * (passes - 1)
        assert sum(inside for _, inside in each) == passes * 3 * two_level.inside_node_bytes(**layer)
    each = launch(bytes_to_other_nodes, lambda: Hybrid(2), 5, world_size=4).returns
    assert sum(across for across, _ in each) == 5 * 3 * two_level.cross_node_bytes(**layer)


def accumulated(stage, home, dtype, windows=3, micro=4):
    """Gradients of several passes, most of them in no_sync and some not; also what is refused."""
    torch.manual_seed(dist.get_rank())
    module = awkward.mlp()
    model = STAGES[stage](
        module, torch.optim.AdamW, lr=0.01, units=list(module), travel=Hybrid(2), home=home and home(),
        mixed_precision=dtype,
    )  # fmt: skip
    for window in range(windows):
        for number in range(micro):
            x = micro_batch(window, number)[dist.get_rank() :: dist.get_world_size()]
            with model.no_sync() if number not in (1, micro - 1) else contextlib.nullcontext():
                (model(x).float().square().mean() / micro).backward()
        model.clip_grad_norm_(0.05)
        model.step()
        model.zero_grad()
    state = dict(model.state_dict())
    with model.no_sync():
        model(micro_batch(0, 0)).float().square().mean().backward()
    said = awkward.error_of(model.step), awkward.error_of(model.leave)
    model.zero_grad()
    model.leave()
    return state, said


def micro_batch(window, number):
    return torch.randn(8, 8, generator=torch.Generator().manual_seed(10 * window + number))


@pytest.mark.parametrize("device", ["cpu", "strict"])
@pytest.mark.parametrize(("stage", "home", "dtype"), [(2, None, None), (3, None, None), (3, Host, torch.bfloat16)])
def test_sums_of_nodes_wait_for_the_last_micro_batch(stage, home, dtype, device):
    module = awkward.mlp()
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
    for window in range(3):
        for number in range(4):
            (module(micro_batch(window, number)).square().mean() / 4).backward()
        nn.utils.clip_grad_norm_(module.parameters(), 0.05)
        optimizer.step()
        optimizer.zero_grad()
    ranks = launch(accumulated, stage, home, dtype, world_size=4, device=device).returns
    for state, (step, left) in ranks:
        close(state, dict(module.state_dict()), **({} if dtype is None else {"rtol": 0.1, "atol": 0.03}))
        assert all(torch.equal(state[key], ranks[0][0][key]) for key in state)
        assert "gradients added up in no_sync were not reduced; make the last backward pass outside it" in step
        assert "gradients in this" in left


def fails_on_one(stage, where):
    """Rank 3 catches an error in a pass of no_sync and goes on; what each rank is told, and a step after that."""
    module = awkward.mlp()
    model = STAGES[stage](module, torch.optim.SGD, lr=0.1, units=list(module), travel=Hybrid(2))

    def fail(*_):
        if dist.get_rank() == 3:
            raise ValueError("mine")

    def window():
        for number in range(3):
            with model.no_sync() if number < 2 else contextlib.nullcontext():
                model(torch.ones(2, 8)).sum().backward()

    window()
    model.zero_grad()
    handle = module[0].register_forward_hook(fail) if where == "forward" else module[1].weight.register_hook(fail)
    said = ""
    try:
        with model.no_sync():
            with contextlib.suppress(ValueError):
                model(torch.ones(2, 8)).sum().backward()
            handle.remove()
        model(torch.ones(2, 8)).sum().backward()
    except RuntimeError as error:
        said = str(error)
    model.zero_grad()
    window()
    model.step()
    return said, dict(model.state_dict())


@pytest.mark.parametrize(("stage", "where"), [(2, "backward"), (3, "backward"), (3, "forward")])
def test_all_nodes_learn_of_an_error_in_no_sync(stage, where):
    ranks = launch(fails_on_one, stage, where, world_size=4).returns
    for said, state in ranks:
        assert "ended with an error" in said
        assert all(torch.equal(state[key], ranks[0][1][key]) for key in state)


# ---- the rest of a training program


def programs(folder):
    """Checkpoints of shards inside nodes load flat and back; loss scaling sees an overflow in one rank's part."""
    results = {}

    def model_in(travel):
        module = awkward.mlp(dist.get_rank())
        return ZeroStage3(module, torch.optim.AdamW, lr=0.01, units=list(module), travel=travel)

    def go_on(model, steps):
        for step in steps:
            torch.manual_seed(step)
            model(torch.randn(4, 8)).square().mean().backward()
            model.step()
            model.zero_grad()
        return torch.cat([value.reshape(-1) for value in model.state_dict().values()])

    first = model_in(Hybrid(2))
    go_on(first, range(2))
    save(first, folder)
    expected = go_on(first, range(2, 3))
    for name, travel in (("flat", None), ("nodes", Hybrid(2)), ("zero++", ZeroPlusPlus(None, None, True, 2))):
        other = model_in(travel)
        load(other, folder)
        results[name] = (go_on(other, range(2, 3)) - expected).abs().max().item()

    module = awkward.mlp()
    model = ZeroStage3(module, torch.optim.SGD, lr=0.1, units=list(module), mixed_precision=torch.float16,
                       travel=ZeroPlusPlus(ranks_per_node=2))  # fmt: skip
    before = model.state_dict()
    scaler = GradScaler("cpu", init_scale=2.0**15)
    scale = 1e9 if dist.get_rank() == 3 else 1.0  # overflows there alone
    scaler.scale(model(torch.ones(2, 8)).float().sum() * scale).backward()
    scaler.step(model)
    scaler.update()
    model.zero_grad()
    after = model.state_dict()
    results["left out"] = all(torch.equal(after[key], before[key]) for key in before) and scaler.get_scale() < 2.0**15
    return results


def test_checkpoints_and_loss_scaling(tmp_path):
    for results in launch(programs, str(tmp_path), world_size=4).returns:
        assert results.pop("left out")
        assert set(results) == {"flat", "nodes", "zero++"}
        assert max(results.values()) < 1e-6, results


def groups_of():
    node, across = levels(dist.group.WORLD, 2)
    again = levels(dist.group.WORLD, 2)
    return dist.get_process_group_ranks(node), dist.get_process_group_ranks(across), again.node is node


def test_levels():
    assert launch(groups_of, world_size=4).returns == [
        ([0, 1], [0, 2], True),
        ([0, 1], [1, 3], True),
        ([2, 3], [0, 2], True),
        ([2, 3], [1, 3], True),
    ]


def refusals():
    told = []
    for make in (
        lambda: STAGES[1](awkward.mlp(), torch.optim.AdamW, travel=ZeroPlusPlus(ranks_per_node=1)),
        lambda: STAGES[3](awkward.mlp(), torch.optim.AdamW, travel=Hybrid(2)),
        lambda: STAGES[3](awkward.mlp(), torch.optim.AdamW, travel=Hybrid(0)),
        lambda: ZeroPlusPlus("int7"),
        lambda: ZeroPlusPlus(gradients="fp8"),
        lambda: ZeroPlusPlus(block=255),
        lambda: ZeroPlusPlus(block=0),
        lambda: STAGES[3](awkward.mlp(), torch.optim.AdamW, travel="top-k"),
    ):
        with pytest.raises((ValueError, TypeError), match="take|give") as caught:
            make()
        told.append(str(caught.value))
    return told


def test_refusals():
    for told in launch(refusals, world_size=3).returns:
        assert "take ZeroStage3" in told[0]
        assert told[1] == "ranks_per_node is 2, and 3 ranks are not whole nodes of so many; give a divisor"
        assert "ranks_per_node is 0" in told[2]
        assert "weights is 'int7'; take one of 'bf16', 'int8', 'int4', or None" in told[3]
        assert "gradients is 'fp8'" in told[4]
        assert "block is 255; give an even number" in told[5]
        assert "block is 0" in told[6]
        assert told[7] == "travel is 'top-k'; give zero.Hybrid() or zero.ZeroPlusPlus()"
