"""Memory, hooks and errors that a program shares with a trainer: as with torch's, or refused by name on every rank."""

import functools

import pytest
import torch
import torch.distributed as dist
from torch import nn

from ringzero import RankError, launch
from ringzero.data_parallel import DistributedDataParallel, FlatDataParallel, NaiveDataParallel
from ringzero.zero import STAGES
from tests.awkward import error_of, mlp

KINDS = {
    "naive": NaiveDataParallel,
    "flat": FlatDataParallel,
    "ddp": functools.partial(DistributedDataParallel, bucket_cap_mb=1e-4),
    "ring": functools.partial(DistributedDataParallel, bucket_cap_mb=1e-4, algorithm="ring"),
    "ddp, find_unused": functools.partial(DistributedDataParallel, find_unused=True),
}
HOLDS = {
    "itself": lambda p: p.grad,
    "detached": lambda p: p.grad.detach(),
    "a view": lambda p: p.grad.view(-1)[:2],
    "numpy": lambda p: torch.from_numpy(p.grad.numpy()),
    "another parameter's": lambda p: _given_to_another(p),
}


def _given_to_another(parameter):
    other = nn.Parameter(torch.zeros_like(parameter))
    other.grad = parameter.grad
    return _GradOf(other)


class _GradOf:
    def __init__(self, parameter):
        self.parameter = parameter

    def clone(self):
        return self.parameter.grad.clone()


def batch(step):
    x = torch.randn(6, 8, generator=torch.Generator().manual_seed(step)).double()
    return x[dist.get_rank() :: dist.get_world_size()]


def kept(kind):
    """How far gradients that were kept are off after more passes, and whether memory is taken again otherwise."""
    module = mlp().double()
    model, off = KINDS[kind](module), []
    for hold in HOLDS.values():
        for step in range(3):
            model(batch(step)).square().mean().backward()
            held = [hold(p) for p in module.parameters()]
            was = [each.clone() for each in held]
            model.zero_grad(set_to_none=True)
            model(batch(9)).square().mean().backward()
            off += [(each.clone() - before).abs().max().item() for each, before in zip(held, was, strict=True)]
            model.zero_grad(set_to_none=True)
            del held
    places = set()
    for step in range(3):
        model(batch(step)).square().mean().backward()
        places.add(tuple(p.grad.data_ptr() for p in module.parameters()))
        model.zero_grad()
    return off, len(places)


@pytest.mark.parametrize("kind", KINDS)
def test_kept_gradients_stay_and_other_memory_is_used_again(kind):
    for off, places in launch(kept, kind, world_size=2).returns:
        assert not any(off)
        assert places == 1 or kind in ("naive", "flat")


def with_a_buffer_of_its_own(kind, flat):
    """The program's own memory for gradients, in which it clips them: one buffer for all, or a tensor for each."""
    module = mlp().double()
    model = KINDS[kind](module) if kind in KINDS else module
    parameters = list(module.parameters())
    if flat:
        buffer = torch.zeros(sum(p.numel() for p in parameters), dtype=torch.float64)
        own = [
            part.view(p.shape)
            for part, p in zip(buffer.split([p.numel() for p in parameters]), parameters, strict=True)
        ]
    else:
        own = [torch.zeros_like(p) for p in parameters]
    for parameter, gradient in zip(parameters, own, strict=True):
        parameter.grad = gradient
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    for step in range(3):
        torch._foreach_zero_(own)
        x = torch.randn(6, 8, generator=torch.Generator().manual_seed(step)).double()
        model(x if kind is None else batch(step)).square().mean().backward()
        torch._foreach_mul_(own, 0.5)
        optimizer.step()
    return [p.detach() for p in parameters], own


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_the_mean_is_where_the_program_has_its_gradients(kind, flat):
    expected = with_a_buffer_of_its_own(None, flat)
    for found in launch(with_a_buffer_of_its_own, kind, flat, world_size=2).returns:
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)


def penalty_of_gradients(kind):
    module = mlp().double()
    model = KINDS[kind](module)
    model(batch(0)).square().mean().backward(create_graph=True)
    torch.optim.SGD(module.parameters(), lr=0.1).step()  # as without a graph
    penalty = sum(p.grad.square().sum() for p in module.parameters())
    module.zero_grad()
    (model(batch(1)).square().mean() + penalty).backward()


@pytest.mark.parametrize("kind", KINDS)
def test_a_mean_that_lost_its_graph_is_no_constant_in_a_loss(kind):
    def work():
        return error_of(functools.partial(penalty_of_gradients, kind))

    for said in launch(work, world_size=2).returns:
        assert "take the gradients of torch.autograd.grad(loss, parameters, create_graph=True)" in said


def hooked(kind):
    """Gradients where a hook that was registered after wrapping changes each rank's own gradient in another way."""
    rank, module = dist.get_rank(), mlp().double()
    model = KINDS[kind](module) if kind in KINDS else nn.parallel.DistributedDataParallel(module)

    def change(parameter):
        parameter.grad.mul_(rank + 1).clamp_(-0.01, 0.02)

    for parameter in module.parameters():
        parameter.register_post_accumulate_grad_hook(change)
    for step in range(3):
        model.zero_grad()
        model(batch(step)).square().mean().backward()
    return [p.grad for p in module.parameters()]


@pytest.mark.parametrize("world_size", [2, 3])
def test_hooks_registered_after_wrapping_act_before_the_average_as_in_torch(world_size):
    expected = launch(hooked, "torch", world_size=world_size).returns[0]
    for kind in KINDS:
        for gradients in launch(hooked, kind, world_size=world_size).returns:
            torch.testing.assert_close(gradients, expected, rtol=0, atol=1e-14, msg=kind)


def _step(optimizer, _parameter):
    optimizer.step()


def stepping_in_a_hook():
    errors = []
    for wrap in KINDS.values():
        module = mlp()
        model = wrap(module)
        for parameter in module.parameters():
            optimizer = torch.optim.SGD([parameter], lr=0.1)
            parameter.register_post_accumulate_grad_hook(functools.partial(_step, optimizer))
        errors.append(error_of(lambda model=model: model(torch.ones(2, 8)).sum().backward()))
        model.leave()
    return errors


def test_a_step_inside_the_backward_pass_is_refused():
    for errors in launch(stepping_in_a_hook, world_size=2).returns:
        assert all("this SGD steps inside a backward pass" in error for error in errors), errors


class Trip(torch.autograd.Function):
    on = False

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        if Trip.on:
            raise ArithmeticError("boom")
        return gradient


class Tripping(nn.Module):
    """``at`` is the place of the trip among the layers: the first comes last in the backward pass."""

    def __init__(self, at):
        super().__init__()
        torch.manual_seed(0)
        self.layers, self.at = nn.ModuleList(nn.Linear(6, 6) for _ in range(3)), at
        self.double()

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(Trip.apply(x) if i == self.at else x)
        return x


def one_failed(kind, at, failing, in_step):
    """What each step raised, and the parameters at the end; the rank goes on where only it knows of the error."""
    module = Tripping(at)
    model, optimizer, raised = KINDS[kind](module), torch.optim.SGD(module.parameters(), lr=0.1), []
    for step in range(4):
        Trip.on = step == in_step and dist.get_rank() in failing
        x = torch.randn(6, 6, generator=torch.Generator().manual_seed(step)).double()
        x = x[dist.get_rank() :: dist.get_world_size()].requires_grad_()
        try:
            model(x).square().mean().backward()
            optimizer.step()
        except ArithmeticError:
            raised.append("boom")
        except RuntimeError as error:
            raised.append(str(error))
            break
        raised.append(error_of(model.zero_grad))
        if raised[-1] != "nothing was raised":
            break
    Trip.on = False
    return raised, [p.detach() for p in module.parameters()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("at", "in_step"), [(0, 0), (0, 2), (1, 0), (1, 2), (2, 2)])
def test_an_error_on_one_rank_is_noticed_by_all(kind, at, in_step):
    """Where every gradient of the pass had left before the error (``at`` 0), it is noticed one pass later."""
    ranks = launch(one_failed, kind, at, (1,), in_step, world_size=3, timeout=60).returns
    for raised, _ in ranks:
        assert "ended with an error on rank 1 and not on the others" in raised[-1], ranks


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("at", "in_step"), [(0, 0), (0, 2), (1, 2)])
def test_an_error_on_all_ranks_leaves_the_pass_out(kind, at, in_step):
    module = Tripping(at)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for step in range(4):
        x = torch.randn(6, 6, generator=torch.Generator().manual_seed(step)).double()
        if step != in_step:
            optimizer.zero_grad()
            module(x).square().mean().backward()
            optimizer.step()
    for raised, parameters in launch(one_failed, kind, at, (0, 1), in_step, world_size=2, timeout=60).returns:
        assert [text for text in raised if text not in ("boom", "nothing was raised")] == []
        torch.testing.assert_close(parameters, [p.detach() for p in module.parameters()], rtol=0, atol=1e-14)


class WrittenView(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3)).double()

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).view(-1, 6)
            x[:, 0] = 0
        return x


def written_views():
    x = torch.randn(6, 6, generator=torch.Generator().manual_seed(0)).double()[dist.get_rank() :: dist.get_world_size()]
    found = []
    for wrap in KINDS.values():
        model = wrap(WrittenView())
        model(x).square().mean().backward()
        found.append([p.grad for p in model.parameters()])
    for stage in STAGES.values():  # its gradients are in shards
        stage(WrittenView(), torch.optim.SGD)(x).square().mean().backward()
    return found


def test_an_output_that_is_a_view_written_to_in_place():
    module = WrittenView()
    module(torch.randn(6, 6, generator=torch.Generator().manual_seed(0)).double()).square().mean().backward()
    expected = [p.grad for p in module.parameters()]
    for found in launch(written_views, world_size=2).returns:
        for gradients in found:
            torch.testing.assert_close(gradients, expected, rtol=0, atol=1e-14)


def one_step(kind):
    KINDS[kind](mlp())(torch.ones(2, 8)).sum().backward()


@pytest.mark.parametrize("kind", KINDS)
def test_one_step_and_the_end_is_no_error_by_nccls_rules(kind):
    launch(one_step, kind, world_size=2, device="strict")


def sparse_adam(kind):
    """An embedding with sparse gradients: what was raised, and the parameters after three steps."""
    torch.manual_seed(0)
    module = nn.Embedding(10, 3, sparse=True).double()
    model = KINDS[kind](module) if kind in KINDS else nn.parallel.DistributedDataParallel(module)
    optimizer = torch.optim.SparseAdam(module.parameters(), lr=0.1)

    def steps():
        for step in range(3):
            optimizer.zero_grad()
            model(torch.tensor([step, 2 * dist.get_rank() + 1])).square().sum().backward()
            optimizer.step()

    return error_of(steps), module.weight.detach()


def test_sparse_adam_is_right_or_refused_by_name():
    _, expected = launch(sparse_adam, "torch", world_size=2).returns[0]
    for error, weight in launch(sparse_adam, "naive", world_size=2).returns:
        assert error == "nothing was raised"
        torch.testing.assert_close(weight, expected, rtol=0, atol=1e-14)
    for kind in ("flat", "ddp"):
        for error, _ in launch(sparse_adam, kind, world_size=2).returns:
            assert error.startswith("SparseAdam takes sparse gradients, and a "), error


def odd_type():
    module = mlp()
    module[0].bias = nn.Parameter(torch.zeros(8).to(torch.float8_e4m3fn))
    return [error_of(functools.partial(wrap, module)) for wrap in KINDS.values()]


def test_a_type_of_which_no_mean_is_taken_is_named():
    for errors in launch(odd_type, world_size=2).returns:
        assert all("0.bias is torch.float8_e4m3fn, and a mean over ranks is taken of" in error for error in errors)


class WithBuffers(nn.Module):
    """Running statistics, a constant that autograd saves, and one that the first forward pass fills."""

    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.BatchNorm1d(4), nn.Linear(4, 4)
        self.register_buffer("constant", torch.rand(4))
        self.register_buffer("lazy", torch.zeros(4))

    def forward(self, x):
        if not self.lazy.any():
            self.lazy.fill_(2)
        return self.linear(self.norm(x)) * self.constant * self.lazy


def with_running_statistics():
    """Of five steps: how often a tensor was read out in the forward pass, and the statistics that it began with."""
    torch.manual_seed(dist.get_rank())
    norm = nn.BatchNorm1d(4)
    model, read, asked, began = DistributedDataParallel(nn.Sequential(norm, nn.Linear(4, 4))), [], [], []
    real = torch.Tensor.tolist
    torch.Tensor.tolist = lambda tensor: read.append(1) or real(tensor)
    norm.register_forward_pre_hook(lambda norm, _: began.append(norm.running_mean.clone()))
    for _ in range(5):
        before = len(read)
        outputs = [model(torch.rand(3, 4)) for _ in range(2)]
        asked.append(len(read) - before)
        sum(output.sum() for output in outputs).backward()
    return asked, began


def test_running_statistics_are_rank_0_s_and_nobody_asks_whether_they_differ():
    """To ask waits for a GPU, in every forward pass."""
    (_, of_rank_0), *others = launch(with_running_statistics, world_size=3).returns
    assert not torch.equal(of_rank_0[1], of_rank_0[4])
    for asked, began in others:
        assert asked == [0] * 5
        assert all(map(torch.equal, began, of_rank_0))


def two_forward_passes_then_backward():
    torch.manual_seed(dist.get_rank())
    module = WithBuffers()
    module.norm = nn.Identity()
    model = DistributedDataParallel(module)
    for _ in range(3):
        outputs = [model(torch.rand(3, 4)) for _ in range(2)]
        sum(output.sum() for output in outputs).backward()
    return module.constant, module.lazy


def test_buffers_that_do_not_differ_are_not_written_to_where_autograd_saved_them():
    (constant, lazy), other = launch(two_forward_passes_then_backward).returns
    assert torch.equal(constant, other[0])
    assert torch.equal(lazy, other[1])


def changed_on_rank_0_between_two_passes():
    model = DistributedDataParallel(WithBuffers())
    for _ in range(3):
        model(torch.rand(3, 4)).sum().backward()
    first = model(torch.rand(3, 4))
    if dist.get_rank() == 0:
        model.module.constant = model.module.constant * 3
    (first + model(torch.rand(3, 4))).sum().backward()


def test_a_buffer_that_autograd_saved_is_not_written_to_without_its_knowing():
    """Else the first pass's gradient would be computed with the second one's buffer, on the other ranks."""
    with pytest.raises(RankError, match="has been modified by an inplace operation") as error:
        launch(changed_on_rank_0_between_two_passes, world_size=2)
    assert error.value.rank == 1


# ---- how parameters lie, what an optimizer steps, and modules that hold a replica


def convolutions(laid_out):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(36, 2))
    if laid_out == "transposed":
        module[3].weight = nn.Parameter(torch.randn(36, 2).T)
    return module.to(memory_format=torch.channels_last) if laid_out == "channels_last" else module


def steps_fused(make, laid_out):
    module = convolutions(laid_out)
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.1, fused=True)
    model = make(module)
    for step in range(3):
        optimizer.zero_grad()
        x = torch.randn(3, 2, 5, 5, generator=torch.Generator().manual_seed(10 * step + dist.get_rank()))
        model(x).square().mean().backward()
        optimizer.step()
    return [p.detach().contiguous() for p in module.parameters()]


@pytest.mark.parametrize("laid_out", ["channels_last", "transposed"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_fused_step_is_right_however_parameters_lie(kind, laid_out):
    right = launch(steps_fused, nn.parallel.DistributedDataParallel, laid_out).returns[0]
    for found in launch(steps_fused, KINDS[kind], laid_out).returns:
        torch.testing.assert_close(found, right)


def test_ranks_whose_parameters_lie_in_other_ways_are_told_so():
    def work():
        return error_of(lambda: DistributedDataParallel(convolutions("channels_last" if dist.get_rank() else "")))

    for said in launch(work).returns:
        assert "the ranks' modules differ: rank 0 has 0.weight: (4, 2, 3, 3)" in said
        assert "strides (18, 1, 6, 2)" in said


def test_an_optimizer_in_the_pass_steps_nothing_of_others():
    def work():
        one, other = nn.Linear(2, 1), nn.Linear(3, 1)
        optimizer = torch.optim.SGD([*one.parameters(), *other.parameters()], lr=0.1)
        return error_of(lambda: DistributedDataParallel(one, optimizer=optimizer))

    for said in launch(work).returns:
        assert "optimizer steps 2 parameters that the Linear does not have, the first of shape (1, 3)" in said


def test_a_scripted_module_is_averaged():
    def work():
        torch.manual_seed(0)
        module = nn.Sequential(torch.jit.script(nn.Linear(3, 3)), nn.Linear(3, 1))
        torch.manual_seed(dist.get_rank())
        DistributedDataParallel(module)(torch.randn(2, 3)).sum().backward()
        return module[0].weight.grad

    one, other = launch(work).returns
    torch.testing.assert_close(one, other)


@pytest.mark.parametrize("kind", KINDS)
def test_a_module_that_holds_a_replica_loads_what_it_saved(kind):
    def work():
        for held in (mlp(), nn.ModuleDict({"module": mlp()})):
            model = KINDS[kind](held)
            container, averaged = nn.ModuleDict({"g": model}), torch.optim.swa_utils.AveragedModel(model)
            for each in (container, averaged):
                saved = {key: value.clone() for key, value in each.state_dict().items()}
                with torch.no_grad():
                    for p in each.parameters():
                        p.zero_()
                each.load_state_dict(saved)
                now = each.state_dict()
                assert not [key for key, value in saved.items() if not torch.equal(now[key], value)]

    launch(work)
