"""What programs are made of: ``PARTS`` of a model, and ``MOVES``, the things that a program does with it, in any order.

A move is written once. It does the same to a trainer on ranks and to one process that has the whole batch, and what it
``note``s is compared, too. A move that has no right outcome, since a rank alone goes astray, is in ``NO_RIGHT``.
"""

import contextlib
import copy
import io
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_, get_total_norm, parameters_to_vector

from ringzero import zero
from tests.peers.behaviours import WIDTH, Fails, linear
from tests.peers.trainers import OneProcess, TorchsFSDP2

SAMPLES = 11  # so that ranks have parts of different sizes
PARTS, MOVES, NEEDS, NO_RIGHT = {}, {}, {}, set()


# ---- parts of models


class Affine(nn.Module):
    """``x @ weight + shift``: ``weight`` of any layout, ``shift`` a parameter or a buffer of any layout."""

    def __init__(self, weight, shift, buffer=False):
        super().__init__()
        self.weight = nn.Parameter(weight)
        if buffer:
            self.register_buffer("shift", shift)
        else:
            self.shift = nn.Parameter(shift)

    def forward(self, x):
        return x @ self.weight.to(x.dtype) + self.shift.sum(0).to(x.dtype)


class Odd(nn.Module):
    """A number that is no vector, a parameter of no elements, and buffers of other types."""

    def __init__(self):
        super().__init__()
        self.number, self.nothing = nn.Parameter(torch.rand(())), nn.Parameter(torch.rand(0, 3))
        self.register_buffer("count", torch.randint(1, 5, ()))
        self.register_buffer("mask", torch.rand(3, WIDTH).T[:, 0] > 0.3)
        self.register_buffer("none", None)
        self.register_buffer("hidden", torch.rand(WIDTH, 2)[:, 1], persistent=False)

    def forward(self, x):
        return x * self.number * self.count + self.mask * self.hidden.to(x.dtype) + self.nothing.sum()


class Fused(nn.Module):
    """Parameters that are views of one tensor, as of a fused projection."""

    def __init__(self):
        super().__init__()
        self.q, self.k = (nn.Parameter(part) for part in torch.randn(WIDTH, 2 * WIDTH).chunk(2, 1))

    def forward(self, x):
        return x @ self.q - x @ self.k


def normal(*shape):
    return torch.randn(*shape) / 2


def tied_pair():
    both = nn.Sequential(linear(), linear())
    both[1].weight = both[0].weight
    return both


PARTS |= {
    "linear": linear,
    "gaps": lambda: Affine(normal(WIDTH, 2 * WIDTH)[:, ::2], normal(1, WIDTH)),
    "transposed": lambda: Affine(normal(WIDTH, WIDTH).T, normal(3, WIDTH).T[:, :1].T),
    "slice": lambda: Affine(normal(9, WIDTH + 3)[2:8, 3:], normal(2, WIDTH, 2)[:, :, 1]),
    "strided": lambda: Affine(torch.as_strided(normal(60), (WIDTH, WIDTH), (7, 1), 3), normal(1, WIDTH)),
    "column buffer": lambda: Affine(normal(WIDTH, WIDTH), normal(WIDTH, 4)[:, 1:2].T, buffer=True),
    "expanded buffer": lambda: Affine(normal(WIDTH, WIDTH), normal(1, WIDTH).expand(3, WIDTH), buffer=True),
    "odd": Odd,
    "fused": Fused,
    "tied": tied_pair,
    "nested": lambda: nn.Sequential(nn.Linear(WIDTH, 3), nn.Sequential(nn.Tanh(), nn.Linear(3, WIDTH))),
}


class Model(nn.Module):
    """The ``parts`` after each other; one whose name begins with "frozen " is frozen. ``tally`` counts backward passes.

    ``adapter`` is what a program may add later.
    """

    def __init__(self, parts):
        super().__init__()
        self.parts = nn.ModuleList(PARTS[part.removeprefix("frozen ")]() for part in parts)
        for name, part in zip(parts, self.parts, strict=True):
            part.requires_grad_(not name.startswith("frozen "))
        self.head, self.adapter, self.tally = linear(2), None, nn.Parameter(torch.zeros(1))

    def forward(self, x, tally=None):
        for part in self.parts:
            x = Fails.apply(torch.tanh(x + part(x)))
        if self.adapter is not None:
            x = x + self.adapter(x)
        out = self.head(x) + 0 * self.tally
        return out if tally is None else 0 * out.sum() + tally * self.tally.sum()


# ---- a program that runs


class Run:
    """A program's ``trainer``, under one process (``rank`` is None) or on ranks, and what it noted."""

    def __init__(self, program, make, rank):
        self.program, self.make, self.rank = program, make, rank
        self.count = 0  # of batches
        self.moved = 0.0  # how far the parameters went, at most
        self.noted = {}
        self.scaler = None
        self.wrap(self.fresh_module())

    @property
    def module(self):
        return self.trainer.module

    def fresh_module(self, seed=None):
        """One that is the same on all ranks with a ``seed``, else each rank's own; FSDP2 takes them as they are."""
        own = 0 if self.rank is None or self.make is TorchsFSDP2 else self.rank
        torch.manual_seed(own if seed is None else seed)
        with torch.device("cpu"):  # whose random numbers are those of one process
            model = Model(self.program.parts)
        return self.program.typed(model, self.rank is None)

    def fresh_layer(self, *size):
        torch.manual_seed(11)
        with torch.device("cpu"):
            layer = nn.Linear(*size)
        layer = self.program.typed(layer, self.rank is None)
        return layer.to(next(p.dtype for p in self.module.parameters()))

    def wrap(self, module):
        self.trainer = self.make(module, self.program.optimizer_and_options, **self.program.options)
        self.new_scaler()

    def new_scaler(self):
        if self.program.precision == "fp16" and self.rank is not None:
            self.scaler, self.stepped = self.trainer.scaler(init_scale=8.0)

    def parts_of(self, whole):
        """Those of all ranks in one process, this rank's own on ranks."""
        ranks = range(self.program.ranks) if self.is_alone else [self.rank]
        return [whole[rank :: self.program.ranks] for rank in ranks]

    @property
    def is_alone(self):
        """Whether this process has the whole batch; a module that left its trainer does on each rank."""
        return type(self.trainer) is OneProcess

    def batch(self, number=None):
        if number is None:
            number, self.count = self.count, self.count + 1
        x = torch.randn(SAMPLES, WIDTH, generator=torch.Generator().manual_seed(100 + number), device="cpu")
        wide = self.rank is None or self.program.precision == "double"
        return x.to(torch.get_default_device(), torch.float64 if wide else torch.float32)

    def loss(self, **options):
        parts = self.parts_of(self.batch())
        return sum(mean_square(self.trainer(part, **options)) for part in parts) / len(parts)

    def backward(self, loss, **options):
        (loss if self.scaler is None else self.scaler.scale(loss)).backward(**options)

    def no_sync(self):
        return self.trainer.no_sync()

    def unscale(self):
        if self.scaler is not None:
            self.scaler.unscale_(self.stepped)

    def step(self):
        if self.scaler is None:
            self.goes(self.trainer.step)
        else:
            self.goes(self.scaler.step, self.stepped)
            self.scaler.update()

    def goes(self, step, *given):
        """Call ``step``, and note in one process how far the parameters went."""
        before = [p.detach().clone() for p in self.module.parameters()] if self.rank is None else []
        step(*given)
        moved = [(p - old).abs().max().item() for p, old in zip(self.module.parameters(), before, strict=False)
                 if p.numel()]  # fmt: skip
        self.moved += max(moved, default=0.0)

    def zero_grad(self):
        self.trainer.zero_grad()

    def train(self, between=None):
        self.backward(self.loss())
        self.unscale()
        if between is not None:
            between(self)
        self.step()
        self.zero_grad()

    def note(self, name, value):
        value = value.full_tensor() if hasattr(value, "full_tensor") else value
        self.noted[f"{len(self.noted)} {name}"] = torch.as_tensor(value).detach().cpu().double().clone()

    def output(self, model=None):
        """Of the trained model, or of a copy of the module, without gradients."""
        x = self.batch(99)
        with torch.no_grad():
            return self.trainer(x) if model is None else model(x.to(next(model.parameters()).dtype))


def mean_square(output):
    return output.square().mean() if output.dim() else output


def gradients(run):
    return [p.grad for p in run.module.parameters() if p.grad is not None]


def move(kind, needs=(), no_right=False):
    """Register a move. ``needs``: what the trainer's model must have, or else the program does not do it."""

    def register(do):
        name = do.__name__.replace("_", " ")
        MOVES[name] = do
        KINDS.setdefault(kind, []).append(name)
        NEEDS[name] = needs
        if no_right:
            NO_RIGHT.add(name)
        return do

    return register


def between(do):
    """Register the move of a step in which ``do`` has its turn between ``backward`` and ``step``."""

    def step(run):
        run.train(do)

    step.__name__ = do.__name__
    return move("gradients")(step)


KINDS = {}


# ---- steps and windows


@move("plain")
def step(run):
    run.train()


@move("plain")
def steps(run):
    for _ in range(3):
        run.train()


def passes(run, count, syncs):
    for i in range(count):
        with run.no_sync() if not syncs(i) else contextlib.nullcontext():
            run.backward(run.loss() / count)


@move("windows")
def window(run):
    passes(run, 3, lambda i: i == 2)
    run.unscale()
    run.step()
    run.zero_grad()


@move("windows")
def window_all_synced(run):
    passes(run, 2, lambda i: True)
    run.unscale()
    run.step()
    run.zero_grad()


@move("windows")
def window_synced_first(run):
    """What comes last stays unreduced."""
    passes(run, 2, lambda i: i == 0)
    run.unscale()
    run.step()
    run.zero_grad()


@move("windows")
def leftovers(run):
    """The last window of an epoch, without its synchronised end."""
    passes(run, 2, lambda i: False)
    run.unscale()
    run.step()
    run.zero_grad()


@move("windows")
def begins_a_window(run):
    """What follows adds to it."""
    passes(run, 2, lambda i: False)


@move("windows")
def begins_a_synced_window(run):
    run.backward(run.loss())


@move("windows")
def forgets_a_window(run):
    passes(run, 2, lambda i: False)
    run.zero_grad()


@move("windows")
def forward_in_no_sync(run):
    with run.no_sync():
        loss = run.loss()
    run.backward(loss)
    run.unscale()
    run.step()
    run.zero_grad()


@move("windows")
def backward_in_no_sync(run):
    loss = run.loss()
    with run.no_sync():
        run.backward(loss)
    run.train()


@move("windows")
def many_small_after_a_large(run):
    """In a type of few digits the small ones are lost."""
    large = 2 / torch.finfo(run.program.low or torch.float16).eps
    for i in range(25):
        with run.no_sync() if i % 2 else contextlib.nullcontext():
            run.backward(run.loss(tally=1.0 if i else large))
    run.unscale()
    run.step()
    run.zero_grad()


@move("windows")
def two_losses(run):
    loss = run.loss()
    run.backward(0.3 * loss, retain_graph=True)
    run.backward(0.7 * loss)
    run.unscale()
    run.step()
    run.zero_grad()


@move("windows")
def evaluates_in_a_window(run):
    with run.no_sync():
        run.backward(run.loss() / 2)
    run.module.eval()
    run.note("output", run.output())
    run.module.train()
    run.backward(run.loss() / 2)
    run.unscale()
    run.step()
    run.zero_grad()


@move("windows")
def steps_twice(run):
    run.backward(run.loss())
    run.unscale()
    run.step()
    if run.program.precision != "fp16":  # a scaler unscales once
        run.step()
    run.zero_grad()


@move("windows")
def steps_without_gradients(run):
    run.zero_grad()
    if run.scaler is None:
        run.step()


@move("windows")
def clips_within_a_window(run):
    run.backward(run.loss())
    norm = run.trainer.clip(1e9)
    if run.program.precision != "fp16":  # there the gradients are still scaled
        run.note("norm", norm)
    run.backward(run.loss())
    run.unscale()
    run.step()
    run.zero_grad()


# ---- what is done with gradients


@between
def clip(run):
    run.note("norm", run.trainer.clip(0.05))


@between
def clip_by_torch(run):
    run.note("norm", clip_grad_norm_(run.module.parameters(), 0.05))


@between
def clip_by_torch_with_inf(run):
    run.note("norm", clip_grad_norm_(run.module.parameters(), 0.01, float("inf")))


@between
def clip_wrapper_s_parameters(run):
    run.note("norm", clip_grad_norm_(list(run.trainer.model.parameters()), 0.05))


@between
def clip_values(run):
    clip_grad_value_(run.module.parameters(), 0.01)


@between
def total_norm(run):
    run.note("norm", get_total_norm(gradients(run)))


@between
def total_norm_of_all(run):
    run.note("norm", get_total_norm([p.grad for p in run.module.parameters() if p.requires_grad]))


@between
def halves_gradients(run):
    for parameter in run.module.parameters():
        if parameter.grad is not None:
            parameter.grad.mul_(0.5)


@between
def halves_gradients_foreach(run):
    torch._foreach_mul_([p.grad for p in run.module.parameters() if p.requires_grad], 0.5)


@between
def new_gradients(run):
    for parameter in run.module.parameters():
        if parameter.grad is not None:
            parameter.grad = parameter.grad * 0.5


@between
def norms_logged(run):
    run.note("norm", sum((g.double().square().sum() for g in gradients(run)), torch.zeros(())))


@between
def norms_logged_by_name(run):
    for name, parameter in run.module.named_parameters():
        if parameter.grad is not None and parameter.numel():
            run.note(name, parameter.grad.norm())


@between
def how_many_gradients(run):
    run.note("gradients", float(len(gradients(run))))


@between
def decays_by_hand(run):
    for parameter in run.module.parameters():
        if parameter.grad is not None:
            parameter.grad.add_(parameter.detach(), alpha=0.1)


@between
def gradients_as_a_vector(run):
    run.note("norm", parameters_to_vector([p.grad for p in run.module.parameters() if p.requires_grad]).norm())


@between
def drops_a_gradient(run):
    run.module.head.bias.grad = None


@between
def takes_nans_out(run):
    for gradient in gradients(run):
        torch.nan_to_num_(gradient)


@move("gradients")
def keeps_gradients(run):
    """As who projects gradients of two losses: the first ones are kept over ``zero_grad``."""
    run.backward(run.loss())
    kept = {name: p.grad for name, p in run.module.named_parameters() if p.grad is not None}
    run.trainer.zero_grad()
    run.backward(run.loss())
    run.unscale()
    run.note("kept", sum((g.double().square().sum() for g in kept.values()), torch.zeros(())))
    for name, parameter in run.module.named_parameters():
        if name in kept and parameter.grad is not None:
            parameter.grad.add_(kept[name], alpha=0.5)
    run.step()
    run.zero_grad()


@move("gradients")
def sharpness_aware(run):
    """SAM: to where the loss is largest nearby, and back."""
    run.backward(run.loss())
    towards = {p: 0.05 * p.grad.detach().clone() for p in run.module.parameters() if p.grad is not None}
    with torch.no_grad():
        for parameter, by in towards.items():
            parameter.add_(by)
    run.zero_grad()
    run.backward(run.loss())
    run.unscale()
    with torch.no_grad():
        for parameter, by in towards.items():
            parameter.sub_(by)
    run.step()
    run.zero_grad()


@move("gradients")
def gradient_by_autograd_grad(run):
    """It goes past ``backward``, so nobody averages it; on one process it is the mean."""
    trained = [p for p in run.module.parameters() if p.requires_grad]
    got = [each.clone(memory_format=torch.contiguous_format) for each in torch.autograd.grad(run.loss(), trained)]
    if run.rank is not None and not run.is_alone:
        for each in got:
            dist.all_reduce(each)
            each.div_(run.program.ranks)
    run.note("norm", sum((g.double().square().sum() for g in got), torch.zeros(())))


# ---- hooks


@move("hooks")
def tensor_hook(run):
    run.module.head.weight.register_hook(lambda gradient: gradient / 2)
    run.train()


def halve(parameter):
    parameter.grad.mul_(0.5)


@move("hooks")
def accumulate_hook(run):
    for parameter in run.module.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(halve)
    run.train()


@move("hooks")
def accumulate_hook_for_a_step(run):
    handle = run.module.head.weight.register_post_accumulate_grad_hook(halve)
    run.train()
    handle.remove()


@move("hooks")
def forward_hook(run):
    run.module.head.register_forward_hook(lambda module, inputs, output: output * 2)
    run.train()


@move("hooks")
def output_written_to(run):
    """In place, in a view of it, before the loss."""
    parts = run.parts_of(run.batch())
    loss = 0
    for part in parts:
        output = run.trainer(part).view(-1)
        output += 0.1
        loss = loss + output.square().mean() / len(parts)
    run.backward(loss)
    run.unscale()
    run.step()
    run.zero_grad()


@move("hooks")
def column_of_the_output_written_to(run):
    parts = run.parts_of(run.batch())
    loss = 0
    for part in parts:
        output = run.trainer(part)
        output[:, 0].relu_()
        loss = loss + output.square().mean() / len(parts)
    run.backward(loss)
    run.unscale()
    run.step()
    run.zero_grad()


# ---- other ways to step and to forget


@move("optimizer")
def optimizer_s_step(run):
    run.backward(run.loss())
    if run.scaler is None:
        run.trainer.optimizer.step()
    else:
        run.unscale()
        run.step()
    run.zero_grad()


@move("optimizer")
def optimizer_s_zero_grad(run):
    run.backward(run.loss())
    run.unscale()
    run.step()
    run.trainer.optimizer.zero_grad()
    run.train()


@move("optimizer")
def module_s_zero_grad(run):
    run.backward(run.loss())
    run.unscale()
    run.step()
    run.module.zero_grad()
    run.train()


@move("optimizer")
def forgets_by_hand(run):
    run.backward(run.loss())
    run.unscale()
    run.step()
    for parameter in run.module.parameters():
        parameter.grad = None
    run.train()


@move("optimizer")
def sets_to_zero(run):
    run.backward(run.loss())
    run.unscale()
    run.step()
    run.trainer.model.zero_grad(set_to_none=False)
    run.train()


@move("optimizer")
def zero_grad_before(run):
    run.zero_grad()
    run.train()


@move("optimizer")
def another_optimizer(run):
    run.backward(run.loss())
    run.unscale()
    run.goes(torch.optim.SGD([p for p in run.module.parameters() if p.requires_grad], lr=0.05).step)
    run.zero_grad()


@move("optimizer")
def lower_rate(run):
    for group in run.trainer.optimizer.param_groups:
        group["lr"] *= 0.5


@move("optimizer")
def scheduler(run):
    schedule = torch.optim.lr_scheduler.StepLR(run.trainer.optimizer, 1, 0.5)
    for _ in range(2):
        run.train()
        schedule.step()


@move("optimizer")
def closure(run):
    if run.scaler is not None:  # which takes none
        run.zero_grad()
        return run.train()

    def of_loss():
        run.zero_grad()
        loss = run.loss()
        loss.backward()
        return loss

    run.goes((run.trainer.model if hasattr(run.trainer.model, "step") else run.trainer.optimizer).step, of_loss)
    run.zero_grad()


@move("optimizer")
def scaler(run):
    scale, stepped = run.trainer.scaler(init_scale=1024.0)
    for _ in range(2):
        scale.scale(run.loss()).backward()
        run.goes(scale.step, stepped)
        scale.update()
        run.zero_grad()


@move("optimizer")
def scaler_and_clip(run):
    scale, stepped = run.trainer.scaler(init_scale=64.0)
    passes_ = 2
    for i in range(passes_):
        with run.no_sync() if i + 1 < passes_ else contextlib.nullcontext():
            scale.scale(run.loss() / passes_).backward()
    scale.unscale_(stepped)
    run.note("norm", run.trainer.clip(0.1))
    run.goes(scale.step, stepped)
    scale.update()
    run.zero_grad()


@move("optimizer")
def renews_the_optimizer(run):
    """As who starts a second phase with another rate."""
    renew_all(run)


def renew_all(run):
    """A sharded model has its optimizer, so it is wrapped again."""
    if hasattr(run.trainer.model, "optimizer_state_dict"):
        run.wrap(run.module)
    else:
        renew(run)


def renew(run):
    """A new optimizer over what the module has now; a sharded model keeps its own, and should refuse what is new."""
    if hasattr(run.trainer.model, "optimizer_state_dict"):
        return
    run.trainer.optimizer = run.trainer.optimizer_of(*run.program.optimizer_and_options)
    run.new_scaler()


# ---- frozen, and not any more


@move("freezing")
def freezes(run):
    run.module.parts[0].requires_grad_(False)
    run.train()


@move("freezing")
def freezes_within_a_window(run):
    with run.no_sync():
        run.backward(run.loss())
    run.module.parts[0].requires_grad_(False)
    run.train()


@move("freezing")
def freezes_for_a_step(run):
    before = [(p, p.requires_grad) for p in run.module.parts.parameters()]
    run.module.parts[0].requires_grad_(False)
    run.train()
    for parameter, was in before:
        parameter.requires_grad_(was)
    run.train()


@move("freezing")
def unfreezes(run):
    """The optimizer does not know of it."""
    run.module.requires_grad_(True)
    run.train()


@move("freezing")
def unfreezes_and_adds(run):
    added = [p for p in run.module.parameters() if not p.requires_grad]
    for parameter in added:
        parameter.requires_grad_(True)
    known = {p for group in run.trainer.optimizer.param_groups for p in group["params"]}
    known |= set(getattr(run.trainer.model, "trained", {}).values()) if hasattr(run.trainer.model, "vectors") else set()
    if new := [p for p in added if p not in known]:
        run.trainer.add_group(new)
    run.train()


@move("freezing")
def unfreezes_and_renews(run):
    run.module.requires_grad_(True)
    renew_all(run)
    run.train()


@move("freezing")
def unfreezes_and_wraps(run):
    run.module.requires_grad_(True)
    run.wrap(run.module)
    run.train()


@move("freezing")
def trains_the_head_alone(run):
    for parameter in run.module.parts.parameters():
        parameter.requires_grad_(False)
    run.train()


# ---- changes of the module after it was wrapped


def state_of_another(run):
    return {
        name: value.to(run.program.stepped_in(run.rank is None)) if value.is_floating_point() else value
        for name, value in run.fresh_module(seed=5).state_dict().items()
    }


@move("late")
def loads(run):
    run.trainer.load(state_of_another(run))


@move("late")
def loads_into_the_module(run):
    run.module.load_state_dict(state_of_another(run))


@move("late")
def loads_and_assigns(run):
    run.module.load_state_dict(state_of_another(run), assign=True)
    renew(run)


@move("late")
def loads_and_assigns_without_renewing(run):
    run.module.load_state_dict(state_of_another(run), assign=True)
    run.train()


@move("late")
def loads_and_assigns_by_the_wrapper(run):
    run.trainer.model.load_state_dict(state_of_another(run), assign=True)
    renew(run)


@move("late")
def new_head(run):
    run.module.head = run.fresh_layer(WIDTH, 2)
    renew(run)


@move("late")
def new_head_not_in_the_optimizer(run):
    run.module.head = run.fresh_layer(WIDTH, 2)


@move("late")
def adapter(run):
    run.module.adapter = run.fresh_layer(WIDTH, WIDTH)
    renew(run)


@move("late")
def adapter_alone(run):
    """As for low-rank adaption: all else is frozen."""
    run.module.requires_grad_(False)
    run.module.adapter = run.fresh_layer(WIDTH, WIDTH)
    renew(run)


@move("late")
def adapter_and_wraps(run):
    run.module.adapter = run.fresh_layer(WIDTH, WIDTH)
    run.wrap(run.module)


@move("late")
def adapter_for_a_moment(run):
    run.module.adapter = run.fresh_layer(WIDTH, WIDTH)
    run.module.adapter = None


@move("late")
def new_parameter(run):
    """A bias that is another parameter object of the same values."""
    run.module.head.bias = nn.Parameter(run.module.head.bias.detach().clone())
    renew(run)


@move("late")
def parametrized(run):
    nn.utils.parametrizations.weight_norm(run.module.head)
    renew(run)


@move("late")
def parametrized_and_wraps(run):
    if run.rank is not None and not run.is_alone:
        run.trainer.model.leave()
    nn.utils.parametrizations.weight_norm(run.module.head)
    run.wrap(run.module)


@move("late")
def to_what_it_is(run):
    run.module.to(next(run.module.parameters()).dtype)


@move("late")
def to_float(run):
    """Parameters in fewer digits from now on."""
    run.module.float()
    renew(run)


@move("late")
def data_replaced(run):
    with torch.no_grad():
        for parameter in run.module.parameters():
            parameter.data = parameter.data.clone()


@move("late")
def weights_scaled(run):
    with torch.no_grad():
        for parameter in run.module.parameters():
            parameter.mul_(0.9)


@move("late")
def weights_scaled_by_data(run):
    for parameter in run.module.parameters():
        parameter.data.mul_(0.9)


@move("late")
def weights_scaled_when_whole(run):
    with run.trainer.whole(write=True), torch.no_grad():
        for parameter in run.module.parameters():
            parameter.mul_(0.9)


@move("late")
def weights_read_when_whole(run):
    with run.trainer.whole(), torch.no_grad():
        run.note("norm", sum(p.double().square().sum() for p in run.module.parameters()))


@move("late")
def weights_read(run):
    with torch.no_grad():
        run.note("norm", sum(p.double().square().sum() for p in run.module.parameters()))


@move("late")
def weights_as_a_vector(run):
    run.note("norm", parameters_to_vector(run.module.parameters()).norm())


@move("late")
def buffer_changed(run):
    for buffer in run.module.buffers():
        if buffer.is_floating_point() and buffer.stride(0):
            buffer.mul_(0.9)


@move("late")
def buffer_replaced(run):
    for module in run.module.modules():
        for name, buffer in [*module.named_buffers(recurse=False)]:
            setattr(module, name, buffer.clone())


@move("late")
def a_part_is_dropped(run):
    trained = any(parameter.requires_grad for parameter in run.module.parts[0].parameters())
    run.module.parts[0] = nn.Identity()
    if trained:  # a sharded model refuses that; of what is frozen its optimizer knows nothing, and goes on
        renew(run)


@move("late")
def late_tie(run):
    run.module.adapter = run.fresh_layer(WIDTH, WIDTH)
    first = next(
        (m for m in run.module.parts.modules() if type(m) is nn.Linear and m.weight.shape == (WIDTH, WIDTH)), None
    )
    if first is not None:
        run.module.adapter.weight = first.weight
    renew(run)


@move("late")
def wraps_again(run):
    run.wrap(run.module)


@move("late")
def leaves(run):
    if run.rank is not None and not run.is_alone:
        run.trainer.model.leave()
        run.scaler = None
        run.trainer = OneProcess(run.module, run.program.optimizer_and_options)
    else:
        run.trainer = OneProcess(run.module, run.program.optimizer_and_options)
    run.train()


@move("late")
def leaves_and_wraps(run):
    if run.rank is not None and not run.is_alone:
        run.trainer.model.leave()
    run.wrap(run.module)
    run.train()


@move("late")
def moving_average(run):
    average = [p.detach().clone() for p in run.module.parameters()]
    for _ in range(2):
        run.train()
        for mean, parameter in zip(average, run.module.parameters(), strict=True):
            mean.lerp_(parameter.detach(), 0.5)
    for mean in average:
        run.note("average", mean)


@move("late")
def averaged_model_of_the_module(run):
    average = torch.optim.swa_utils.AveragedModel(run.module)
    for _ in range(2):
        run.train()
        average.update_parameters(run.module)
    run.note("output", run.output(average))


@move("late")
def copy_of_the_module(run):
    copied = copy.deepcopy(run.module)
    run.train()
    run.note("output", run.output(copied))


@move("late")
def copy_of_the_module_trained(run):
    """Each rank trains it on its own."""
    copied = copy.deepcopy(run.module)
    mean_square(copied(run.batch(99).to(next(copied.parameters()).dtype))).backward()
    run.note("gradient", copied.head.weight.grad)


@move("late")
def copy_of_the_wrapper(run):
    copied = copy.deepcopy(run.trainer.model)
    run.train()
    run.note("output", run.output(copied))


@move("late")
def pickled_module(run):
    file = io.BytesIO()
    torch.save(run.module, file)
    file.seek(0)
    run.note("output", run.output(torch.load(file, weights_only=False)))


@move("late")
def evaluates_the_module(run):
    run.note("output", run.output(run.module))


# ---- checkpoints


def whole_state(run):
    model = run.trainer.model
    return copy.deepcopy((run.module if model is None or run.is_alone else model).state_dict())


@move("checkpoints")
def state_into_one_process(run):
    plain = run.fresh_module(seed=9)
    plain.load_state_dict({k: v.to(plain.state_dict()[k].dtype) for k, v in whole_state(run).items()})
    run.note("output", run.output(plain))


def states(run):
    """What a program keeps, so that it can go on from here later."""
    model = run.trainer.model
    of_optimizer = getattr(model, "optimizer_state_dict", run.trainer.optimizer.state_dict)()
    return whole_state(run), copy.deepcopy(of_optimizer)


def go_on_from(run, kept):
    of_module, of_optimizer = kept
    model = run.trainer.model
    run.trainer.load(of_module)
    getattr(model, "load_optimizer_state_dict", run.trainer.optimizer.load_state_dict)(of_optimizer)


@move("checkpoints")
def goes_back(run):
    kept = states(run)
    run.train()
    go_on_from(run, kept)
    run.train()


@move("checkpoints")
def goes_back_within_a_window(run):
    kept = states(run)
    with run.no_sync():
        run.backward(run.loss())
    go_on_from(run, kept)
    run.train()


@move("checkpoints")
def resumes(run):
    run.train()
    kept = states(run)
    run.wrap(run.fresh_module())
    go_on_from(run, kept)
    run.train()


@move("checkpoints")
def resumes_from_files(run):
    if not hasattr(run.trainer.model, "optimizer_state_dict"):
        return resumes(run)
    run.train()
    with tempfile.TemporaryDirectory() as own:
        folder = [own]
        dist.broadcast_object_list(folder)
        zero.save(run.trainer.model, Path(folder[0]) / "set")
        run.wrap(run.fresh_module())
        zero.load(run.trainer.model, Path(folder[0]) / "set")
        dist.barrier()
    return run.train()


@move("checkpoints")
def optimizer_s_state_dict(run):
    """The object that schedulers take, too."""
    kept = copy.deepcopy(run.trainer.optimizer.state_dict())
    run.trainer.optimizer.load_state_dict(kept)


# ---- errors


def failing(run, fails):
    Fails.now = fails
    try:
        run.backward(run.loss())
    except ArithmeticError:
        run.zero_grad()
    else:
        run.unscale()
        run.step()
        run.zero_grad()
    finally:
        Fails.now = False


@move("errors")
def backward_fails(run):
    failing(run, True)
    run.train()


@move("errors", no_right=True)
def backward_fails_on_a_rank(run):
    failing(run, run.rank == 0)
    run.train()


@move("errors", no_right=True)
def backward_fails_in_no_sync_on_a_rank(run):
    with run.no_sync():  # ranks that left their trainer train a model each: there none fails, or they would differ
        failing_pass(run, run.rank == 0 and not run.is_alone)
    run.train()


def failing_pass(run, fails):
    Fails.now = fails
    with contextlib.suppress(ArithmeticError):
        run.backward(run.loss())
    Fails.now = False


@move("errors")
def forward_fails(run):
    with contextlib.suppress(RuntimeError):
        run.trainer(torch.ones(2, WIDTH + 1).double())
    run.train()


@move("errors")
def forward_fails_on_a_rank(run):
    """It tries again with what fits."""
    if run.rank == 0:
        with contextlib.suppress(RuntimeError):
            run.trainer(torch.ones(2, WIDTH + 1).double())
    run.train()


@move("errors")
def nonfinite_on_a_rank(run):
    run.backward(run.loss() * (float("inf") if run.rank in (None, 0) else 1.0))
    if run.scaler is not None:
        run.unscale()
    try:
        run.trainer.clip(1.0, error_if_nonfinite=True)
    except RuntimeError as error:
        if "non-finite" not in str(error) and "the norm of the gradients is" not in str(error):
            raise
    run.zero_grad()
    run.new_scaler()
    run.train()


@move("errors")
def no_gradients_meant(run):
    run.note("output", run.output())
    run.train()


# ---- ranks with more data than others


def uneven(run, **options):
    """Rank r has 1 + r batches."""
    start, ranks = run.count, run.program.ranks
    with contextlib.nullcontext() if run.is_alone else run.trainer.model.join(**options):
        for i in range(ranks):
            having = [r for r in range(ranks) if i <= r]
            run.count = start + i
            if run.is_alone:
                whole = run.batch()
                total = sum(mean_square(run.trainer(whole[r::ranks])) for r in having)
                over = ranks if options.get("divide_by_initial_world_size", True) else len(having)
                run.backward(total / over)
            elif run.rank in having:
                run.backward(run.loss())
            else:
                continue
            run.unscale()
            run.step()
            run.zero_grad()
    run.count = start + ranks


@move("uneven", needs=("join",))
def joins(run):
    uneven(run)


@move("uneven", needs=("join",))
def joins_over_those_left(run):
    uneven(run, divide_by_initial_world_size=False)
