"""Muon over shards against torch.optim.Muon and AdamW in one process: bits, bytes, and who computes what."""

import inspect
import itertools
import re
from functools import partial
from unittest import mock

import pytest
import torch
import torch.distributed as dist
from torch import nn

from ringzero import launch
from ringzero.costs import muon as costs
from ringzero.record import recorded
from ringzero.record.operation import bytes_sent
from ringzero.zero import STAGES, File, Host, Hybrid, ZeroPlusPlus, load, muon, save, state
from ringzero.zero.matrices import EXCHANGES, embeddings_of, matrices_of, split
from ringzero.zero.muon import Muon
from ringzero.zero.sharding import Layout
from tests import awkward
from tests.zero.test_offload import new_folder
from tests.zero.test_zero_checkpoint import equal

MUON = {"lr": 0.05, "weight_decay": 0.2, "momentum": 0.9}
OTHERS = {"lr": 0.01, "weight_decay": 0.1}
HEAD = ("head.weight",)
EXCHANGE = ("all_to_all", "gather")
STEPS, MAX_NORM, SMALL = 3, 0.05, 1e-3  # SMALL: MiB, so that there are several vectors, and several matrices in some


class Mixed(nn.Module):
    """Wide, tall, square and one-column matrices of odd sizes between a tied embedding, 1-D, 0-D and 3-D parameters."""

    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.embedding, self.tall, self.wide = nn.Embedding(10, 7), nn.Linear(7, 19), nn.Linear(19, 5)
        self.norm, self.square, self.scalar = nn.LayerNorm(5), nn.Linear(5, 5, bias=False), nn.Parameter(torch.rand(()))
        self.column, self.convolution = nn.Parameter(torch.rand(5, 1)), nn.Conv1d(1, 2, 3)
        self.again, self.head = nn.Linear(7, 10, bias=False), nn.Linear(10, 3)
        self.again.weight = self.embedding.weight
        self.wider = nn.Linear(6, 7)

    def forward(self, tokens):
        x = torch.tanh(self.embedding(tokens).mean(1))
        given = (tokens / 10).to(x.dtype)
        x = self.norm(torch.tanh(self.wide(torch.tanh(self.tall(x))))) * self.scalar
        x = self.square(x) @ self.column + self.wider(given) + self.convolution(given[:, None]).mean((1, 2))[:, None]
        return self.head(self.again(x))


MATRICES = ["column", "tall.weight", "wide.weight", "square.weight", "wider.weight"]


def by_kind(module, others_names=HEAD):
    """``{kind: {name: parameter}}``"""
    named = {name: p for name, p in module.named_parameters() if p.requires_grad}
    names = split(named, embeddings_of(module, named), others_names)
    return {kind: {name: named[name] for name in of_kind} for kind, of_kind in zip(muon.KINDS, names, strict=True)}


def sharded(stage, module, groups=None, **options):
    options = MUON | {"others": OTHERS, "others_names": HEAD if hasattr(module, "head") else ()} | options
    if stage < 3:
        options.setdefault("bucket_cap_mb", SMALL)
    return STAGES[stage](module, Muon, groups=groups, **options)


def alone(module, **options):
    """One process: torch's Muon, and AdamW on the rest."""
    kinds = by_kind(module, HEAD if hasattr(module, "head") else ())
    optimizers = [torch.optim.Muon(kinds["muon"].values(), **MUON | options)]
    return optimizers + ([torch.optim.AdamW(kinds["adamw"].values(), **OTHERS)] if kinds["adamw"] else [])


def backward(model, step):
    """This rank's part of the batch."""
    rank, n = dist.get_rank(), dist.get_world_size()
    tokens, targets = (whole[rank::n] for whole in awkward.batch(step))
    awkward.loss_of(model, tokens, targets).backward()


def give_gradients(model, plain):
    """What the ranks reduced, whole, to a plain module."""
    parameters = dict(plain.named_parameters())
    for vector in model.vectors():
        reduced = vector.reduced
        of_vector = {} if reduced is None else state.whole(vector, reduced.to(vector.master.dtype))
        for name in vector.parameters:
            parameters[name].grad = of_vector[name].clone() if name in of_vector else None


def in_lockstep(stage, exchange, make=Mixed, steps=STEPS, torchs=(), **options):
    """Train, and have one process step with the same gradients: both models' states, and both optimizers'."""
    model = sharded(stage, make(dist.get_rank()), exchange=exchange, **options)
    plain = make(7)
    plain.load_state_dict(model.state_dict())
    optimizers = alone(plain, **dict(torchs))
    for step in range(steps):
        backward(model, step)
        assert model.clip_grad_norm_(MAX_NORM) > MAX_NORM
        give_gradients(model, plain)
        model.step()
        model.zero_grad()
        for optimizer in optimizers:
            optimizer.step()
    return model, plain, optimizers


def as_torchs(ours, kind):
    """The part of ``model.optimizer_state_dict()`` that torch's optimizer of a kind loads."""
    groups = [own for own in ours["param_groups"] if own["kind"] == kind]
    return {"state": {i: ours["state"][i] for own in groups for i in own["params"]}, "param_groups": groups}


def same_states(model, optimizers):
    """Whether torch's optimizers, once ours is loaded into new ones, have the states that they have."""
    for kind, theirs in zip(muon.KINDS, optimizers, strict=False):
        again = type(theirs)([{"params": own["params"]} for own in theirs.param_groups], lr=1.0)
        again.load_state_dict(as_torchs(model.optimizer_state_dict(), kind))
        if not equal(again.state_dict()["state"], theirs.state_dict()["state"]):
            return False
        for ours, plain in zip(again.param_groups, theirs.param_groups, strict=True):
            if any(ours[key] != plain[key] for key in plain if key != "params"):
                return False
    return True


def every_stage_and_exchange():
    wrong = []
    for stage, exchange in itertools.product(STAGES, EXCHANGES):
        model, plain, optimizers = in_lockstep(stage, exchange)
        if not equal(dict(model.state_dict()), dict(plain.state_dict())):
            wrong.append((stage, exchange, "parameters"))
        if not same_states(model, optimizers):
            wrong.append((stage, exchange, "states"))
    return wrong


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_the_same_gradients_make_the_same_bits_as_torch_s_muon_and_adamw(world_size):
    assert launch(every_stage_and_exchange, world_size=world_size).returns == [[]] * world_size


class Small(nn.Module):
    """More ranks than elements in some matrices, and one without any."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.layers = nn.Sequential(nn.Linear(6, 1), nn.Linear(1, 1), nn.Linear(1, 3))
        self.nothing = nn.Parameter(torch.empty(0, 3))

    def forward(self, tokens):
        return self.layers(tokens / 10) + self.nothing.sum()


def mixed_types(seed):
    return awkward.model_of("MixedTypes", seed)


class SometimesUsed(awkward.Unused):
    """``sometimes`` has a gradient in one of three steps, ``never`` in none."""

    def __init__(self, seed):
        torch.manual_seed(seed)
        super().__init__()
        self.calls = 0

    def forward(self, tokens):
        self.calls += 1
        return super().forward(tokens.clamp(max=9 if self.calls == 2 else 8))


VARIANTS = {
    "small": (2, {"make": Small}),
    "float64 too": (3, {"make": mixed_types}),
    "no gradient": (2, {"make": SometimesUsed, "find_unused": True}),
    "float32 masters": (1, {"mixed_precision": torch.bfloat16}),
    "without Nesterov": (1, {"nesterov": False, "torchs": {"nesterov": False}}),
    "as large as AdamW's": (2, {"adjust_lr_fn": "match_rms_adamw", "torchs": {"adjust_lr_fn": "match_rms_adamw"}}),
    "two iterations": (3, {"ns_steps": 2, "eps": 1e-3, "torchs": {"ns_steps": 2, "eps": 1e-3}}),
}


def each_variant(names):
    wrong = []
    for name, exchange in itertools.product(names, EXCHANGES):
        stage, options = VARIANTS[name]
        model, plain, _ = in_lockstep(stage, exchange, **options)
        if not equal(dict(model.state_dict()), dict(plain.state_dict())):
            wrong.append((name, exchange))
    return wrong


def test_options_types_and_awkward_models_bit_for_bit():
    assert launch(each_variant, list(VARIANTS), world_size=3).returns == [[]] * 3


def test_on_strict_which_has_nccl_s_rules():
    names = ["small", "no gradient", "float32 masters"]
    assert launch(each_variant, names, world_size=3, device="strict").returns == [[]] * 3


def test_bfloat16_masters_keep_their_momentum_without_nesterov():
    """There torch.optim.Muon, whose update is the buffer itself, normalises the buffer in place; ours must not."""

    def work():
        model = sharded(1, awkward.mlp(layers=1).bfloat16(), nesterov=False, momentum=0.0)
        model(torch.ones(2, 8, dtype=torch.bfloat16)).sum().backward()
        (vector,) = (each for each in model.vectors() if "0.weight" in each.parameters)
        gradient = vector.reduced.clone()
        model.step()
        return torch.equal(model.optimizer.state[vector.master]["momentum_buffer"], gradient)

    assert launch(work, world_size=1).returns == [True]
    assert launch(work, world_size=2).returns == [True] * 2


def trained(stage, exchange):
    model = sharded(stage, Mixed(dist.get_rank()), exchange=exchange)
    for step in range(STEPS):
        backward(model, step)
        model.step()
        model.zero_grad()
    return dict(model.state_dict())


def test_n_ranks_train_as_one_process_on_the_whole_batch():
    """To a tenth of the way that three steps can go, since sums in another order round to another bfloat16; and across
    ranks, stages and exchanges of the same vectors bit for bit.
    """
    module = Mixed()
    optimizers = alone(module)
    for step in range(STEPS):
        module.zero_grad()
        awkward.loss_of(module, *awkward.batch(step)).backward()
        for optimizer in optimizers:
            optimizer.step()
    runs = list(itertools.product(STAGES, EXCHANGE))
    ranks = launch(lambda: {run: trained(*run) for run in runs}, world_size=3).returns
    for stage, exchange in runs:
        assert all(equal(rank[stage, exchange], ranks[0][stage, "gather"]) for rank in ranks)
        far = 0.1 * STEPS * MUON["lr"]
        torch.testing.assert_close(ranks[0][stage, exchange], dict(module.state_dict()), rtol=0, atol=far)


def in_a_step(stage, exchange, make, **options):
    """What one step's exchange sent, the shapes that this rank orthogonalised, and the elements of its states."""
    model, shapes = sharded(stage, make(0), exchange=exchange, **options), []

    def counted(matrix, **given):
        shapes.append(tuple(matrix.shape))
        return muon_s_own(matrix, **given)

    muon_s_own = muon._zeropower_via_newtonschulz
    backward(model, 0)
    before = len(recorded())
    with mock.patch.object(muon, "_zeropower_via_newtonschulz", counted):
        model.step()
    kinds = {op.kind for op in recorded()[before:]}
    held = sum(s["momentum_buffer"].numel() for s in model.optimizer.state.values() if "momentum_buffer" in s)
    layouts = [v.layout for v in model.vectors() if not v.parameters.keys().isdisjoint(by_kind(model.module)["muon"])]
    return bytes_sent(recorded()[before:]), sorted(kinds), shapes, held, [layout.parameters for layout in layouts]


def held_by(layout, name, rank):
    return sum(stop - start for each, start, stop in layout.pieces(rank) if each == name)


@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_bytes_sent_equal_the_formulas_and_matrices_are_shared_out(world_size):
    """In stage 3, which sends no parameters after a step. All numbers over all ranks.

    With a vector a unit all ranks have pieces of every matrix, with one vector of all matrices they have not.
    """
    ranks = range(world_size)
    for exchange, options in itertools.product(EXCHANGE, ({}, {"units": ()})):
        results = launch(partial(in_a_step, **options), 3, exchange, Mixed, world_size=world_size).returns
        layouts = [Layout(parameters, world_size) for parameters in results[0][-1]]
        pieces = {
            (layout, name, shape): [held_by(layout, name, rank) for rank in ranks]
            for layout in layouts
            for name, shape in layout.parameters
        }
        cut = {key: sizes for key, sizes in pieces.items() if max(sizes) < sum(sizes)}
        assert len(cut) >= (1 if options else 4)  # so the test is of something
        assert all(map(all, pieces.values())) == (not options)
        assert sorted(name for _, name, _ in pieces) == sorted(MATRICES)
        assert sum(held for *_, held, _ in results) == sum(map(sum, pieces.values()))
        sent, orthogonalised = sum(sent for sent, *_ in results), sorted(s for r in results for s in r[2])
        if exchange == "gather":
            assert sent == (world_size - 1) * 2 * sum(layout.numel for layout in {layout for layout, *_ in cut})
            expected = [shape for (_, _, shape), sizes in pieces.items() for size in sizes if size]
        else:
            owner = {(layouts[m.vector], m.name): m.owner for m in matrices_of(tuple(layouts))}
            assert sent == 2 * 2 * sum(
                sum(sizes) - sizes[owner[layout, name]] for (layout, name, _), sizes in cut.items()
            )
            expected = [shape for _, _, shape in pieces]
        assert orthogonalised == sorted(expected)


def equal_halves(seed):
    """Two matrices that two ranks' shards of one vector hold whole."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 6, bias=False), nn.Linear(6, 6, bias=False))


class Halves(nn.Module):
    def __init__(self, seed):
        super().__init__()
        self.both = equal_halves(seed)

    def forward(self, tokens):
        return self.both(tokens.float() / 10)[:, :3]


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_a_matrix_in_one_shard_is_not_exchanged(exchange):
    def work():
        model, plain, _ = in_lockstep(2, exchange, Halves, bucket_cap_mb=25)
        assert equal(dict(model.state_dict()), dict(plain.state_dict()))
        return in_a_step(3, exchange, Halves, units=())

    for sent, kinds, shapes, held, _ in launch(work).returns:
        assert (sent, kinds, shapes, held) == (0, [], [(6, 6)], 36)


def test_batches_send_more_messages_and_the_same_bits():
    def work(batch):
        with mock.patch.object(muon, "BATCH", batch):
            sent, *_ = in_a_step(2, "all_to_all", Mixed)
            before = len(recorded())
            model, plain, _ = in_lockstep(2, "all_to_all")
        called = {op.call for op in recorded()[before:] if op.called and "all_to_all" in op.called}
        return sent, len(called), len(model.vectors()), equal(dict(model.state_dict()), dict(plain.state_dict()))

    together, apart = (launch(work, batch, world_size=3).returns for batch in (2**24, 1))
    assert all(same for *_, same in together + apart)
    assert [calls for _, calls, *_ in together] == [2 * STEPS] * 3
    assert all(calls > 2 * STEPS for _, calls, *_ in apart)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_owners_have_about_the_same_to_do(ranks):
    """Ranks that own a cut matrix differ by one such matrix at most. A tie goes to the rank with the largest piece."""
    shapes = [(7, 19), (19, 5), (5, 5), (64, 16), (16, 64), (32, 32), (32, 32), (1, 3), (3, 1), (8, 8)]
    layouts = tuple(
        Layout(tuple((f"{name}{i}", shape) for i, shape in enumerate(shapes)), ranks) for name in ("a", "b")
    )
    matrices = matrices_of(layouts)
    assert [matrix.shape for matrix in matrices] == shapes * 2
    load = [sum(m.flops for m in matrices if m.owner == rank) for rank in range(ranks)]
    whole = [sum(m.flops for m in matrices if m.owner == rank and not m.is_cut) for rank in range(ranks)]
    for matrix in matrices:
        assert sum(matrix.sizes) == matrix.shape[0] * matrix.shape[1]
        assert matrix.is_cut or matrix.sizes[matrix.owner] == sum(matrix.sizes)
    dearest = max([m.flops for m in matrices if m.is_cut], default=0)
    assert all(load[rank] <= max(whole[rank], min(load) + dearest) for rank in range(ranks))
    (held,) = matrices_of((Layout((("a", (5, 2)),), ranks, owner=ranks - 1),))
    assert (held.is_cut, held.owner) == (False, ranks - 1)
    if ranks > 1:
        (only,) = matrices_of((Layout((("a", (5, 2)),), 4),))  # 2, 3, 2 and 3 elements
        assert (only.sizes, only.owner) == ([2, 3, 2, 3], 1)


def with_groups_and_a_scheduler(stage, exchange):
    """Two groups of each kind, all with options of their own, in lockstep with torch's two optimizers."""

    def groups_of(module):
        first = [module.tall.weight, module.wider.weight]
        one = [*module.norm.parameters(), module.scalar]
        of_muon, of_adamw = (list(members.values()) for members in by_kind(module).values())
        return {
            "muon": [
                {"params": first, "lr": 0.1, "momentum": 0.5, "ns_steps": 3},
                {"params": [p for p in of_muon if all(p is not each for each in first)], "weight_decay": 0.0},
            ],
            "adamw": [
                {"params": [p for p in of_adamw if all(p is not each for each in one)], "lr": 0.002},
                {"params": one, "weight_decay": 0.0, "betas": (0.8, 0.9)},
            ],
        }

    module, plain = Mixed(dist.get_rank()), Mixed(7)
    groups = [own | {"kind": kind} for kind, members in groups_of(module).items() for own in members]
    groups = [groups[2], groups[0], groups[3], groups[1]]
    model = sharded(stage, module, groups, exchange=exchange)
    plain.load_state_dict(model.state_dict())
    theirs = groups_of(plain)
    optimizers = [torch.optim.Muon(theirs["muon"], **MUON), torch.optim.AdamW(theirs["adamw"], **OTHERS)]
    schedulers = [torch.optim.lr_scheduler.StepLR(each, 1, gamma=0.5) for each in (model.optimizer, *optimizers)]
    for step in range(STEPS):
        backward(model, step)
        give_gradients(model, plain)
        model.step()
        model.zero_grad()
        for each in (*optimizers, *schedulers):
            each.step()
    return equal(dict(model.state_dict()), dict(plain.state_dict())) and same_states(model, optimizers)


def test_several_groups_of_each_kind_and_schedulers():
    for exchange in EXCHANGE:
        work = [launch(with_groups_and_a_scheduler, stage, exchange, world_size=3).returns for stage in (1, 3)]
        assert work == [[True] * 3] * 2


def with_a_layer_unfrozen(exchange):
    """Two matrices and their biases come in after a step."""
    module = Mixed(dist.get_rank())
    late = [*module.tall.parameters(), *module.square.parameters()]
    for parameter in late:
        parameter.requires_grad_(False)
    model = sharded(2, module, exchange=exchange)
    backward(model, 0)
    model.step()
    model.zero_grad()
    for parameter in late:
        parameter.requires_grad_(True)
    model.add_param_group({"params": [p for p in late if p.dim() == 2], "lr": 0.3})  # "muon" by default
    model.add_param_group({"params": [p for p in late if p.dim() == 1], "kind": "adamw"})
    plain = Mixed(7)
    plain.load_state_dict(model.state_dict())
    new = {name: p for name, p in plain.named_parameters() if name in ("tall.weight", "square.weight")}
    before = dict(model.state_dict())
    backward(model, 1)
    give_gradients(model, plain)
    model.step()
    torch.optim.Muon(new.values(), **MUON | {"lr": 0.3}).step()
    after = dict(model.state_dict())
    assert not torch.equal(before["tall.bias"], after["tall.bias"])
    return all(torch.equal(after[name], parameter) for name, parameter in new.items()), model.optimizer.summary()


def test_parameters_may_be_added():
    for exchange in EXCHANGE:
        for same, summary in launch(with_a_layer_unfrozen, exchange, world_size=3).returns:
            assert same
            assert "Muon steps 5 parameters" in summary


def load_torchs_states(stage):
    """torch's states, after some steps in one process, into a sharded model; then both step once more."""
    plain = Mixed(0)
    optimizers = alone(plain)
    for step in range(STEPS):
        plain.zero_grad()
        awkward.loss_of(plain, *awkward.batch(step)).backward()
        for optimizer in optimizers:
            optimizer.step()
    both, begin = {"state": {}, "param_groups": []}, 0
    for optimizer in optimizers:
        of_one = optimizer.state_dict()
        (own,) = of_one["param_groups"]
        both["state"] |= {begin + i: value for i, value in of_one["state"].items()}
        both["param_groups"].append(own | {"params": [begin + i for i in own["params"]]})
        begin += len(own["params"])
    model = sharded(stage, Mixed(dist.get_rank()), lr=1.0)
    model.load_state_dict(plain.state_dict())
    model.load_optimizer_state_dict(both)
    backward(model, 5)
    give_gradients(model, plain)
    model.step()
    for optimizer in optimizers:
        optimizer.step()
    return equal(dict(model.state_dict()), dict(plain.state_dict()))


def test_torch_s_states_load():
    assert [launch(load_torchs_states, stage, world_size=3).returns for stage in (2, 3)] == [[True] * 3] * 2


def saved(directory):
    model = sharded(2, Mixed(dist.get_rank()))
    backward(model, 0)
    model.step()
    model.zero_grad()
    save(model, directory)
    states = dict(model.state_dict()), model.optimizer_state_dict()
    backward(model, 1)
    model.step()
    return states, dict(model.state_dict())


def resumed(directory, stage, exchange):
    model = sharded(stage, Mixed(9), exchange=exchange, lr=1.0)
    load(model, directory)
    states = dict(model.state_dict()), model.optimizer_state_dict()
    backward(model, 1)
    model.step()
    return states, dict(model.state_dict())


def test_checkpoints_resume_with_other_ranks_stage_and_exchange(tmp_path):
    (then, after), *_ = launch(saved, tmp_path, world_size=3).returns
    for stage, exchange, world_size in ((2, "gather", 3), (3, "gather", 2), (1, "all_to_all", 4)):
        for ours, later in launch(resumed, tmp_path, stage, exchange, world_size=world_size).returns:
            assert equal(list(ours), list(then))
            torch.testing.assert_close(later, after, rtol=0, atol=0.1 * MUON["lr"])


def test_split_and_summary():
    kinds = by_kind(Mixed())
    assert sorted(kinds["muon"]) == sorted(MATRICES)
    assert {"embedding.weight", "head.weight", "convolution.weight", "scalar", "tall.bias"} <= kinds["adamw"].keys()
    assert "head.weight" in by_kind(Mixed(), ())["muon"]
    tied = nn.ModuleDict({"head": nn.Linear(7, 10, bias=False), "embedding": nn.Embedding(10, 7)})
    tied["head"].weight = tied["embedding"].weight  # its name is now the head's
    assert by_kind(tied, ()) == {"muon": {}, "adamw": {"head.weight": tied["head"].weight}}

    def summary():
        return sharded(3, awkward.model_of("Frozen")).optimizer.summary()

    said = "Muon steps 2 parameters of 45 numbers: {}; AdamW steps 2 parameters of 8 numbers: {}."
    assert launch(summary).returns == [
        said.format("last.weight, first.weight", "last.bias, first.bias")
    ] * 2  # fmt: skip


def test_defaults_are_torch_s():
    theirs = inspect.signature(torch.optim.Muon).parameters
    for name, parameter in list(inspect.signature(Muon).parameters.items())[1:9]:
        assert parameter.default == theirs[name].default, name
    (own,) = Muon([{"params": [torch.nn.Parameter(torch.ones(2))], "kind": "adamw"}]).param_groups
    (plain,) = torch.optim.AdamW([torch.nn.Parameter(torch.ones(2))]).param_groups
    assert {**own, "params": 0} == {**plain, "params": 0, "kind": "adamw"}


def as_one_group(module, kind="muon", **own):
    return {"groups": [{"params": list(module.parameters()), "kind": kind, **own}], "module": module}


def not_attached():
    parameter = nn.Parameter(torch.ones(2))
    parameter.grad = torch.ones(2)
    return Muon([parameter])


BAD = [
    (lambda: sharded(1, awkward.mlp(), exchange="ring"), "exchange is 'ring'; take one of 'all_to_all', 'gather', 'o"),
    (lambda: sharded(1, awkward.mlp(), lr=-1.0), "lr is -1.0; give a number that is not negative"),
    (lambda: sharded(1, awkward.mlp(), momentum=-1.0), "momentum is -1.0; give"),
    (lambda: sharded(1, awkward.mlp(), weight_decay=-1.0), "weight_decay is -1.0; give"),
    (lambda: sharded(1, **as_one_group(awkward.mlp(), lr=-2.0)), "lr is -2.0; give"),
    (lambda: sharded(1, **as_one_group(awkward.mlp(), "adamw", lr=-3.0)), "lr is -3.0; give"),
    (lambda: sharded(1, **as_one_group(awkward.mlp(), "sgd")), "kind of a parameter group is 'sgd'; take 'muon' or 'a"),
    (lambda: sharded(1, awkward.mlp(), adjust_lr_fn="mine"), "adjust_lr_fn is 'mine'; take None, 'original' or"),
    (lambda: sharded(1, awkward.mlp(), ns_steps=100), "ns_steps is 100; give a number of iterations from 0 to 99"),
    (lambda: sharded(1, awkward.mlp(), ns_coefficients=(1, 2)), r"ns_coefficients is \(1, 2\); give three numbers"),
    (lambda: sharded(1, awkward.mlp(), others={"momentum": 1}), "others are options of torch.optim.AdamW.*momentum"),
    (lambda: sharded(1, awkward.mlp(), others={"lr": -1}), "Invalid learning rate: -1"),
    (lambda: sharded(1, awkward.mlp(), others_names="0.weight"), "others_names is '0.weight'; give a list"),
    (lambda: sharded(1, awkward.mlp(), others_names=["9.weight"]), "others_names has 9.weight, which is not among"),
    (lambda: sharded(1, nn.LayerNorm(3)), "Muon has no matrix to step: no 2-D weight of a hidden layer"),
    (lambda: sharded(1, **as_one_group(awkward.mlp())), r"Muon steps matrices, and.*3.bias of shape \(8,\).*'adamw'"),
    (lambda: not_attached().step(), r"call model.step\(\), the model attaches"),
    (lambda: not_attached().summary(), "the model attaches"),
]


def errors():
    return [awkward.error_of(work) for work, _ in BAD]


def test_bad_input_is_named_on_every_rank():
    for raised in launch(errors).returns:
        for (_, message), text in zip(BAD, raised, strict=True):
            assert re.search(message, text), text


def bytes_of_a_step(exchange):
    module = nn.Sequential(*(nn.Linear(*shape, bias=False) for shape in ((24, 48), (48, 24))))
    model = sharded(2, module, exchange=exchange, lr=0.1)

    def step():
        model(torch.randn(2, 24)).square().mean().backward()
        model.step()
        model.zero_grad()

    step()
    before = len(recorded())
    step()
    return bytes_sent(recorded()[before:])


@pytest.mark.parametrize("world_size", [2, 3, 4])
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_bytes_of_a_step_are_those_of_the_formula(exchange, world_size):
    """All ranks together. The formula of "all_to_all" has equal shards; pieces of matrices may lie otherwise."""
    _, total = costs.muon_bytes(exchange, [(48, 24), (24, 48)], world_size, 4, 2)
    sent = sum(launch(bytes_of_a_step, exchange, world_size=world_size).returns)
    if exchange == "all_to_all":
        assert abs(sent / total - 1) < 0.15
    else:
        assert sent == total


def elsewhere(parent):
    """Which homes and travels differ, in a bit, from all on the device of one level."""
    first, *others = (
        in_lockstep(3, "all_to_all", units=())[0].state_dict(),
        *(
            (exchange, name, in_lockstep(3, exchange, units=(), **make())[0].state_dict())
            for exchange in ("all_to_all", "owner")
            for name, make in {
                "parameters": lambda: {"home": Host(parameters=True)},
                "file": lambda: {"home": File(new_folder(parent))},
                "inside one": lambda: {"travel": Hybrid(1)},
                "across one": lambda: {"travel": Hybrid(2)},
                "second shards": lambda: {"travel": ZeroPlusPlus(None, None, True, 2)},
            }.items()
        ),
    )
    return [(exchange, name) for exchange, name, state in others if not equal(dict(state), dict(first))]


def test_every_home_and_travel_gives_the_same_bits(tmp_path):
    assert launch(elsewhere, str(tmp_path), world_size=2, timeout=300).returns == [[], []]
