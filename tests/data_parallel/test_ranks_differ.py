"""Weights or gradients that each rank makes by itself: right where the ranks agree, else refused by name on all."""

import contextlib
import re

import pytest
import torch
import torch.distributed as dist
from torch import nn

from ringzero import launch
from ringzero.data_parallel import DistributedDataParallel, FlatDataParallel, NaiveDataParallel
from ringzero.zero import ZeroStage1, ZeroStage2, ZeroStage3
from tests.peers.outcomes import is_close

DATA_PARALLEL = {each.__name__: each for each in (NaiveDataParallel, FlatDataParallel, DistributedDataParallel)}
WHOLE = {each.__name__: each for each in (*DATA_PARALLEL.values(), ZeroStage1, ZeroStage2)}  # weights on every rank
DIFFER = "differ between the ranks since the module was wrapped"


class Scaled(nn.Module):
    """``scale`` is set in the first forward pass, from the batch, as of a flow's ActNorm, or from itself."""

    def __init__(self, by_batch):
        super().__init__()
        self.scale, self.linear, self.by_batch = nn.Parameter(torch.full((6,), 2.0)), nn.Linear(6, 3), by_batch
        self.double()

    def forward(self, x):
        if self.by_batch is not None:
            with torch.no_grad():
                self.scale.copy_(x.std(0) if self.by_batch else self.scale.clamp(max=0.7))
            self.by_batch = None
        return self.linear(x * self.scale)


def batch(step, rank=0, n=1):
    x = torch.randn(8, 6, generator=torch.Generator().manual_seed(step), dtype=torch.float64)
    return x[rank::n], x[rank::n, :3].sin()


def wrapped(kind, module):
    if kind is None:
        return module, torch.optim.SGD(module.parameters(), lr=0.1)
    if kind in DATA_PARALLEL:
        return DATA_PARALLEL[kind](module), torch.optim.SGD(module.parameters(), lr=0.1)
    model = (WHOLE | {"ZeroStage3": ZeroStage3})[kind](module, torch.optim.SGD, lr=0.1)
    return model, model


def loss_of(model, step, rank, n):
    x, y = batch(step, rank, n)
    return (model(x) - y).square().mean()


def train(kind, by_batch, loads_alone=False, rank=0, n=1):
    torch.manual_seed(0)
    module = Scaled(by_batch)
    model, optimizer = wrapped(kind, module)
    if loads_alone and rank == 0:
        module.load_state_dict({name: value / 2 for name, value in module.state_dict().items()})
    for step in range(3):
        optimizer.zero_grad()
        loss_of(model, step, rank, n).backward()
        optimizer.step()
    return model.state_dict() if isinstance(optimizer, nn.Module) else module.state_dict()


def errors(job, *args, **options):
    """What ``job`` returns on this rank, or the error that it ended with."""
    try:
        return job(*args, **options, rank=dist.get_rank(), n=dist.get_world_size())
    except (RuntimeError, ValueError) as error:
        return str(error)


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize(("by_batch", "loads_alone", "name"), [(True, False, "scale"), (None, True, "linear.weight")])
def test_weights_that_each_rank_made_by_itself_are_refused_on_every_rank(kind, by_batch, loads_alone, name):
    for said in launch(errors, train, kind, by_batch, loads_alone, world_size=3).returns:
        assert isinstance(said, str)
        assert name in said
        assert DIFFER in said


@pytest.mark.parametrize("kind", WHOLE)
def test_weights_that_every_rank_writes_alike_are_right(kind):
    alone = train(None, False)
    for state in launch(errors, train, kind, False, world_size=2).returns:
        assert is_close(alone, state)


def plateau(step, rank, optimizer, parameters):
    """The rate of each rank goes down by its own loss."""
    if step and rank:
        for group in optimizer.param_groups:
            group["lr"] *= 0.5


def scaled(step, rank, optimizer, parameters):
    """As by the number of a rank's own samples."""
    for parameter in parameters:
        parameter.grad /= rank + 1


def noise(step, rank, optimizer, parameters):
    source = torch.Generator().manual_seed(rank)
    for parameter in parameters:
        parameter.grad += torch.randn(parameter.shape, generator=source, dtype=torch.float64)


def by_hand(step, rank, optimizer, parameters):
    """A step without an optimizer."""
    with torch.no_grad():
        for parameter in parameters:
            parameter -= 0.1 * parameter.grad * (rank + 1)


def loads(step, rank, optimizer, parameters):
    """Rank 0 alone takes other weights, later than in the first pass."""
    if step == 5 and rank == 0:
        with torch.no_grad():
            parameters[0].fill_(1.0)


def drifting(kind, drift, rank, n):
    torch.manual_seed(0)
    module = Scaled(None)
    model, optimizer = wrapped(kind, module)
    for step in range(12):
        optimizer.zero_grad()
        loss_of(model, step, rank, n).backward()
        drift(step, rank, getattr(optimizer, "optimizer", optimizer), [*module.parameters()])
        optimizer.step()
    return module.state_dict()


@pytest.mark.parametrize("drift", [plateau, scaled, noise, by_hand, loads], ids=lambda drift: drift.__name__)
@pytest.mark.parametrize("kind", DATA_PARALLEL)
def test_weights_that_drift_apart_are_noticed_after_ten_passes(kind, drift):
    for said in launch(errors, drifting, kind, drift, world_size=2).returns:
        assert isinstance(said, str)
        assert DIFFER in said


def joined(kind, rank, n):
    """In join weights differ for a while."""
    torch.manual_seed(0)
    module = Scaled(None)
    model, optimizer = wrapped(kind, module)
    with model.join():
        for step in range(6 + 8 * rank):
            optimizer.zero_grad()
            loss_of(model, step, rank, n).backward()
            optimizer.step()
    return module.state_dict()


def test_inside_join_weights_may_differ():
    first, second = launch(errors, joined, "DistributedDataParallel", world_size=2).returns
    assert is_close(first, second)


@pytest.mark.parametrize("stage", [ZeroStage1, ZeroStage3])
def test_options_of_shards_that_differ_are_named(stage):
    for said in launch(errors, drifting, stage.__name__, plateau, world_size=2).returns:
        assert re.search("lr of parameter group 0 is 0.1 on rank 0 and 0.00019.* on rank 1, and each rank steps", said)


def put_in(parameters, gradients, averages, n):
    """Make these the gradients of the ``parameters``, averaged by hand or each rank's own."""
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if averages and n > 1:
            dist.all_reduce(gradient)
            gradient /= n
        parameter.grad = gradient


def by_autograd_grad(kind, averages, frozen=False, rank=0, n=1):
    torch.manual_seed(0)
    module = Scaled(None)
    module.scale.requires_grad_(not frozen)
    model, optimizer = wrapped(kind, module)
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    for step in range(2):
        gradients = torch.autograd.grad(loss_of(model, step, rank, n), trained)
        put_in(trained, gradients, averages, n)
        optimizer.step()
        optimizer.step()  # with the same gradients
    return module.state_dict()


@pytest.mark.parametrize("kind", DATA_PARALLEL)
def test_gradients_that_no_pass_brought_are_right_if_the_program_averages_them(kind):
    alone = by_autograd_grad(None, averages=True)
    for state in launch(errors, by_autograd_grad, kind, True, world_size=2).returns:
        assert is_close(alone, state)
    for said in launch(errors, by_autograd_grad, kind, False, world_size=2).returns:
        assert said.startswith("this step would use gradients that no backward pass brought")
        assert "scale, linear.weight, linear.bias" in said


@pytest.mark.parametrize("kind", DATA_PARALLEL)
def test_it_is_noticed_where_the_first_parameter_is_frozen(kind):
    for said in launch(errors, by_autograd_grad, kind, False, True, world_size=2).returns:
        assert "differ between the ranks: linear.weight, linear.bias" in said


def of_the_second_model(kind, averages, rank=0, n=1):
    """Two models share an optimizer: a pass of one, and ``autograd.grad`` of the other."""
    torch.manual_seed(0)
    modules = [Scaled(None), Scaled(None)]
    models = [wrapped(kind, module)[0] for module in modules]
    optimizer = torch.optim.SGD([p for module in modules for p in module.parameters()], lr=0.1)
    for step in range(2):
        optimizer.zero_grad()
        loss_of(models[0], step, rank, n).backward()
        gradients = torch.autograd.grad(loss_of(models[1], step, rank, n), [*modules[1].parameters()])
        put_in(modules[1].parameters(), gradients, averages, n)
        optimizer.step()
    return nn.ModuleList(modules).state_dict()


@pytest.mark.parametrize("kind", DATA_PARALLEL)
def test_each_model_of_an_optimizer_is_looked_at(kind):
    alone = of_the_second_model(None, averages=True)
    for state in launch(errors, of_the_second_model, kind, True, world_size=2).returns:
        assert is_close(alone, state)
    for said in launch(errors, of_the_second_model, kind, False, world_size=2).returns:
        assert said.startswith("this step would use gradients that no backward pass brought")


class Body(nn.Module):
    """Two layers in it, and two in a list, of which torch does not know."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(6, 6).double(), nn.Linear(6, 3).double()
        self.hidden = [nn.Linear(6, 6).double()]

    def forward(self, x):
        return self.second(self.hidden[0](self.first(x)).tanh())


def strange(kind, case, averages, rank=0, n=1):
    """One optimizer steps the module's parameters and others, which the wrapper does not have."""
    body, others = Body(), nn.Linear(3, 3).double()
    nn.init.constant_(others.weight, 0.5)
    unused = ["second.bias"] if case == "unused" else []
    model = body if kind is None else DATA_PARALLEL[kind](body, unused=unused)
    strangers = {"loss": [*others.parameters()], "list": [*body.hidden[0].parameters()], "unused": [body.second.bias]}
    steps = [*dict.fromkeys([*body.parameters(), *strangers[case]])]
    optimizer = torch.optim.SGD(steps, lr=0.1)
    for step in range(2):
        optimizer.zero_grad()
        x, y = batch(step, rank, n)
        output = model(x)
        ((others(output) if case == "loss" else output) - y).square().mean().backward()
        if averages:
            put_in(strangers[case], [p.grad for p in strangers[case]], True, n)
        optimizer.step()
    return nn.ParameterList(steps).state_dict()


@pytest.mark.parametrize("kind", DATA_PARALLEL)
@pytest.mark.parametrize(
    ("case", "name"),
    [("loss", "number 4 of the optimizer, of shape (3, 3)"), ("list", "number 4 of the"), ("unused", "second.bias")],
)
def test_parameters_that_no_wrapper_has_are_right_if_the_program_averages_them(kind, case, name):
    alone = strange(None, case, averages=True)
    for state in launch(errors, strange, kind, case, True, world_size=2).returns:
        assert is_close(alone, state)
    for said in launch(errors, strange, kind, case, False, world_size=2).returns:
        assert "of parameters that nobody averages, and that differ between the ranks" in said
        assert name in said


def unfrozen_and_called_inside(kind, rank, n):
    """The head first, then the body; the program calls the module, and not the wrapper."""
    body = Body()
    body.first.requires_grad_(False)
    model = DATA_PARALLEL[kind](body)
    optimizer = torch.optim.SGD(body.parameters(), lr=0.1)
    for of, trains in enumerate((False, True)):
        body.first.requires_grad_(trains)
        body.second.requires_grad_(not trains)
        for step in range(2):
            optimizer.zero_grad()
            loss_of(model.module, 2 * of + step, rank, n).backward()
            optimizer.step()


@pytest.mark.parametrize("kind", DATA_PARALLEL)
def test_what_was_unfrozen_is_missed_where_the_wrapper_is_not_called(kind):
    for said in launch(errors, unfrozen_and_called_inside, kind, world_size=2).returns:
        assert "differ between the ranks: first.weight, first.bias; wrap a module" in said


def two_paces(kind, averages, rank=0, n=1):
    """One optimizer steps the layer after each pass, with a mean taken by hand; another the scale, after two."""
    torch.manual_seed(0)
    module = Scaled(None)
    model, _ = wrapped(kind, module)
    often, seldom = ([*module.linear.parameters()], [module.scale])
    each_pass, each_window = (torch.optim.SGD(some, lr=0.1) for some in (often, seldom))
    for step in range(4):
        last = step % 2
        with contextlib.nullcontext() if last or kind is None else model.no_sync():
            loss_of(model, step, rank, n).backward()
        if not last:
            put_in(often, [p.grad for p in often], averages, n)
        each_pass.step()
        each_pass.zero_grad()
        if last:
            each_window.step()
            each_window.zero_grad()
    return module.state_dict()


@pytest.mark.parametrize("kind", DATA_PARALLEL)
def test_what_an_optimizer_does_not_step_may_differ(kind):
    alone = two_paces(None, averages=True)
    for state in launch(errors, two_paces, kind, True, world_size=2).returns:
        assert is_close(alone, state)
    for said in launch(errors, two_paces, kind, False, world_size=2).returns:
        assert said.startswith("this step would use gradients that no_sync left")
        assert "linear.weight, linear.bias" in said
        assert "scale" not in said


def with_fast_weights(kind, rank=0, n=1):
    """Weights of one step further, computed from the parameters, which get the gradients."""
    torch.manual_seed(0)
    module = Scaled(None)
    model, optimizer = wrapped(kind, module)
    for step in range(2):
        optimizer.zero_grad()
        fast = {f"{'module.' * (kind is not None)}{name}": p - 0.1 * p.sin() for name, p in module.named_parameters()}
        x, y = batch(step, rank, n)
        (torch.func.functional_call(model, fast, (x,)) - y).square().mean().backward()
        optimizer.step()
    return module.state_dict()


@pytest.mark.parametrize("kind", DATA_PARALLEL)
def test_weights_computed_from_the_parameters_hand_their_gradients_on(kind):
    alone = with_fast_weights(None)
    for state in launch(errors, with_fast_weights, kind, world_size=2).returns:
        assert is_close(alone, state)


def of_new_weights(kind, rank, n):
    module = Scaled(None)
    model, _ = wrapped(kind, module)
    new = {f"module.{name}": p.detach().clone().requires_grad_() for name, p in module.named_parameters()}
    torch.func.functional_call(model, new, (batch(0, rank, n)[0],)).mean().backward()


@pytest.mark.parametrize("kind", DATA_PARALLEL)
def test_new_weights_in_functional_call_are_refused(kind):
    for said in launch(errors, of_new_weights, kind, world_size=2).returns:
        assert "scale, linear.weight, linear.bias came into the Scaled after it was wrapped" in said


def jacobian(rank, n):
    model = ZeroStage3(Scaled(None), torch.optim.SGD, lr=0.1)
    with contextlib.suppress(AttributeError):
        return torch.vmap(torch.func.jacrev(model.module))(batch(0, rank, n)[0]).sum().item()


def test_transforms_of_torch_func_are_refused_where_parameters_come_and_go():
    for said in launch(errors, jacobian, world_size=2).returns:
        assert "take ZeroStage2 for this module" in str(said)
