"""Small training programs. Each takes ``make(module, optimizer, **options)`` and returns what it trained, by name.

All numbers are float64, and every rank's part of a batch is as large as another's, so under each trainer the result is
that of one process on the whole batch, to about 1e-12.
"""

import contextlib
import copy
import dataclasses
import io
import itertools

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.peers.trainers import SGD

WIDTH = 6
BATCH = 72  # so that 1, 2 or 3 micro-batches on 1 to 4 ranks are all of one size
ADAMW = (torch.optim.AdamW, {"lr": 0.02, "weight_decay": 0.1})
BEHAVIOURS = {}


def behaviour(program):
    BEHAVIOURS[program.__doc__.rstrip(".")] = program
    return program


def seeded(make, seed=0):
    torch.manual_seed(seed)
    return make().double()


def batch(step, *shape):
    return torch.randn(BATCH, *(shape or (WIDTH,)), generator=torch.Generator().manual_seed(step)).double()


def layers(count=3):
    return nn.Sequential(*itertools.chain(*((nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(count))))


def train(trainer, steps=3, loss_of=None, inputs=batch, clip=None, before_step=None):
    """Some steps; ``loss_of(trainer, x)`` is the mean over the samples of ``x``."""
    for step in range(steps):
        loss = (loss_of or mean_square)(trainer, trainer.part(inputs(step)))
        loss.backward()
        if clip is not None:
            trainer.clip(*clip)
        if before_step is not None:
            before_step(step)
        trainer.step()
        trainer.zero_grad()
    return trainer.state()


def mean_square(model, x):
    return model(x).square().mean()


# ---- modules


class Block(nn.Module):
    """Something of each kind: a layer, a small parameter, a buffer."""

    scale_shape = (1,)

    def __init__(self):
        super().__init__()
        self.inner, self.scale = nn.Linear(WIDTH, WIDTH), nn.Parameter(torch.ones(self.scale_shape))
        self.register_buffer("shift", torch.linspace(0, 1, WIDTH))

    def forward(self, x):
        return x + self.scale * torch.tanh(self.inner(x) + self.shift)


class WithScalar(Block):
    scale_shape = ()


class Model(nn.Module):
    """``how(self, x)`` with the submodules given."""

    def __init__(self, how, **submodules):
        super().__init__()
        self.how = how
        for name, module in submodules.items():
            setattr(self, name, module)

    def forward(self, *args, **kwargs):
        return self.how(self, *args, **kwargs)


def linear(out=WIDTH, **options):
    return nn.Linear(WIDTH, out, **options)


def simple(name, module, inputs=batch, loss_of=None, optimizer=SGD, **options):
    def program(make):
        return train(make(seeded(module), optimizer, **options), inputs=inputs, loss_of=loss_of)

    program.__doc__ = name
    behaviour(program)


def tokens(step):
    return torch.randint(0, 10, (BATCH, 4), generator=torch.Generator().manual_seed(step))


def images(step):
    return batch(step, 2, 5, 5)


def tied():
    model = Model(
        lambda self, x: self.head(torch.tanh(self.middle(self.embedding(x).mean(1)))),
        embedding=nn.Embedding(10, WIDTH),
        middle=linear(),
        head=linear(10, bias=False),
    )
    model.head.weight = model.embedding.weight
    return model


def frozen():
    model = layers()
    model[2].requires_grad_(False)
    return model


def same_under_two_names():
    shared = linear()
    return Model(lambda self, x: self.b(torch.tanh(self.a(x))), a=shared, b=shared)


@dataclasses.dataclass
class Output:
    value: torch.Tensor
    other: torch.Tensor


def with_auxiliary_loss():
    def forward(self, x):
        self.penalty = self.gate(x).square().mean()
        return self.last(torch.tanh(self.first(x)))

    return Model(forward, first=linear(), gate=linear(), last=linear())


class Gated(nn.Module):
    """Its auxiliary loss is an attribute. The backward pass reaches it before what the module returned."""

    def __init__(self):
        super().__init__()
        self.inner, self.gate, self.second = linear(), linear(), linear()

    def forward(self, x):
        output = self.inner(x)
        self.penalty = self.second(torch.tanh(self.gate(x))).square().mean()
        return output


class Boxed(nn.Module):
    """It returns no tensors, but an object that holds some."""

    def __init__(self):
        super().__init__()
        self.inner, self.side = linear(), linear()

    def forward(self, x):
        return Output(torch.tanh(self.inner(x)), self.side(x))


simple("A stack of layers", layers)
simple("AdamW", layers, optimizer=ADAMW)
simple("Adam with amsgrad", layers, optimizer=(torch.optim.Adam, {"lr": 0.02, "amsgrad": True}))
simple(
    "SGD with Nesterov momentum",
    layers,
    optimizer=(torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
)
simple("Adagrad", layers, optimizer=(torch.optim.Adagrad, {"lr": 0.1}))
simple("RMSprop", layers, optimizer=(torch.optim.RMSprop, {"lr": 0.01}))
simple("NAdam", layers, optimizer=(torch.optim.NAdam, {"lr": 0.01}))
simple("Parameters, a scalar and a buffer beside each other", lambda: nn.Sequential(WithScalar(), WithScalar()))
simple("Tied embedding and output layer", tied, inputs=tokens)
simple("A frozen layer in the middle", frozen)
simple("One module under two names", same_under_two_names)
simple(
    "One layer used twice in a pass",
    lambda: Model(lambda self, x: self.once(self.twice(torch.tanh(self.twice(x)))), once=linear(), twice=linear()),
)
simple(
    "Layers used in another order than registered",
    lambda: Model(
        lambda self, x: self.a(torch.tanh(self.b(torch.tanh(self.c(x))))), a=linear(), b=linear(), c=linear()
    ),
)
simple(
    "A module in a module in a module",
    lambda: nn.Sequential(nn.Sequential(layers(1), nn.Sequential(layers(1))), linear()),
)
simple(
    "A ModuleList",
    lambda: Model(lambda self, x: self.blocks[1](self.blocks[0](x)), blocks=nn.ModuleList([Block(), Block()])),
)
simple(
    "A ModuleDict",
    lambda: Model(lambda self, x: self.of["b"](self.of["a"](x)), of=nn.ModuleDict({"a": Block(), "b": Block()})),
)
simple(
    "A ParameterList",
    lambda: Model(
        lambda self, x: self.last(x * self.p[0] + self.p[1]),
        last=linear(),
        p=nn.ParameterList([nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))]),
    ),
)
simple(
    "A parameter of no elements",
    lambda: Model(
        lambda self, x: self.last(x) + self.nothing.sum(),
        last=linear(),
        nothing=nn.ParameterList([nn.Parameter(torch.ones(0))])[0],
    ),
)
simple(
    "Convolutions", lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(27, 2)), inputs=images
)
simple(
    "Convolutions in channels_last",
    lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(27, 2)).to(
        memory_format=torch.channels_last
    ),
    inputs=lambda step: images(step).contiguous(memory_format=torch.channels_last),
)
simple(
    "LayerNorm and GroupNorm",
    lambda: nn.Sequential(linear(), nn.LayerNorm(WIDTH), nn.Tanh(), nn.GroupNorm(2, WIDTH), linear()),
)
simple("BatchNorm in eval mode", lambda: nn.Sequential(linear(), nn.BatchNorm1d(WIDTH), linear()).eval())
simple(
    "An LSTM",
    lambda: Model(
        lambda self, x: self.last(self.lstm(x)[0][:, -1]), lstm=nn.LSTM(3, WIDTH, batch_first=True), last=linear()
    ),
    inputs=lambda step: batch(step, 5, 3),
)
simple(
    "A TransformerEncoderLayer",
    lambda: nn.TransformerEncoderLayer(WIDTH, 2, 8, dropout=0.0, batch_first=True),
    inputs=lambda step: batch(step, 4, WIDTH),
)
simple(
    "Weight norm, a parametrization", lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(linear()), linear())
)
simple(
    "An embedding", lambda: nn.Sequential(nn.Embedding(10, WIDTH), nn.Flatten(), nn.Linear(4 * WIDTH, 2)), inputs=tokens
)
simple(
    "An embedding with max_norm",
    lambda: nn.Sequential(nn.Embedding(100, WIDTH, max_norm=0.5), nn.Flatten(), nn.Linear(4 * WIDTH, 2)),
    inputs=lambda step: tokens(step) * tokens(step + 100),
)
simple(
    "A sparse embedding",
    lambda: nn.Sequential(nn.Embedding(10, WIDTH, sparse=True), nn.Flatten(), nn.Linear(4 * WIDTH, 2)),
    inputs=tokens,
)
simple("Activations in place", lambda: nn.Sequential(linear(), nn.ReLU(inplace=True), linear()))
simple(
    "Two outputs, one of them unused in the loss",
    lambda: Model(lambda self, x: (self.a(torch.tanh(self.b(x))), self.b(x).detach()), a=linear(), b=linear()),
    loss_of=lambda model, x: model(x)[0].square().mean(),
)
simple(
    "A dict as output",
    lambda: Model(lambda self, x: {"loss": {"of": self.a(x)}, "none": None}, a=linear()),
    loss_of=lambda model, x: model(x)["loss"]["of"].square().mean(),
)
simple(
    "A dataclass as output",
    lambda: Model(lambda self, x: Output(self.a(x), self.b(x)), a=linear(), b=linear()),
    loss_of=lambda model, x: (lambda o: o.value.square().mean() + o.other.mean())(model(x)),
)
simple(
    "A dataclass from a submodule",
    lambda: Model(
        lambda self, x: (lambda o: self.last(self.later(o.value + o.other)))(self.box(torch.tanh(self.first(x)))),
        first=linear(),
        box=Boxed(),
        later=Block(),
        last=linear(),
    ),
)
simple(
    "An auxiliary loss as an attribute of the module",
    with_auxiliary_loss,
    loss_of=lambda model, x: model(x).square().mean() + model.module.penalty,
)
simple(
    "An auxiliary loss as an attribute of a submodule",
    lambda: Model(
        lambda self, x: self.last(self.later(torch.tanh(self.gated(torch.tanh(self.first(x)))))),
        first=linear(),
        gated=Gated(),
        later=Block(),
        last=linear(),
    ),
    loss_of=lambda model, x: model(x).square().mean() + model.module.gated.penalty,
)
simple(
    "Keyword arguments",
    lambda: Model(lambda self, *, x: self.a(x), a=linear()),
    loss_of=lambda model, x: model(x=x).square().mean(),
)
simple(
    "Checkpointing without reentry",
    lambda: Model(
        lambda self, x: self.c(checkpoint(self.b, checkpoint(self.a, x, use_reentrant=False), use_reentrant=False)),
        a=Block(),
        b=Block(),
        c=linear(),
    ),
)
simple(
    "Checkpointing with reentry",
    lambda: Model(
        lambda self, x: self.c(checkpoint(self.b, checkpoint(self.a, x, use_reentrant=True), use_reentrant=True)),
        a=Block(),
        b=Block(),
        c=linear(),
    ),
    inputs=lambda step: batch(step).requires_grad_(),
)
simple(
    "Checkpointing with reentry, all parameters inside",
    lambda: Model(
        lambda self, x: checkpoint(self.b, checkpoint(self.a, x, use_reentrant=True), use_reentrant=True),
        a=Block(),
        b=Block(),
    ),
    inputs=lambda step: batch(step).requires_grad_(),
)
simple(
    "Checkpointing with reentry of parts that share a layer",
    lambda: Model(
        lambda self, x: checkpoint(self.a, checkpoint(self.a, x, use_reentrant=True), use_reentrant=True),
        a=Block(),
        b=Block(),
    ),
    inputs=lambda step: batch(step).requires_grad_(),
    find_unused=True,
)


def sometimes(used):
    """A branch that only some ranks, or none, or some steps use; ``used(x)`` decides."""
    return lambda: Model(
        lambda self, x: self.last(torch.tanh(self.first(x))) + (self.branch(x) if used(x) else 0.0),
        first=linear(),
        branch=linear(),
        last=linear(),
    )


simple("A layer that is never used, SGD", sometimes(lambda x: False), find_unused=True)
simple("A layer that is never used, AdamW", sometimes(lambda x: False), optimizer=ADAMW, find_unused=True)
simple("A layer that is never used, unannounced", sometimes(lambda x: False))


@behaviour
def used_in_some_steps(make):
    """A layer that is used in every second step, AdamW."""
    now = [0]
    trainer = make(seeded(sometimes(lambda x: now[0] % 2)), ADAMW, find_unused=True)
    for now[0] in range(4):
        mean_square(trainer, trainer.part(batch(now[0]))).backward()
        trainer.step()
        trainer.zero_grad()
    return trainer.state()


@behaviour
def used_on_one_rank(make):
    """A layer that only one rank's samples use, AdamW."""

    def forward(self, x, with_branch):
        output = self.last(torch.tanh(self.first(x)))
        if with_branch.any():
            output = output + with_branch[:, None] * self.branch(x)
        return output

    trainer = make(
        seeded(lambda: Model(forward, first=linear(), branch=linear(), last=linear())), ADAMW, find_unused=True
    )
    for step in range(3):
        with_branch = torch.zeros(BATCH).double()
        with_branch[0] = 1.0  # a sample of rank 0's
        trainer(trainer.part(batch(step)), trainer.part(with_branch)).square().mean().backward()
        trainer.step()
        trainer.zero_grad()
    return trainer.state()


# ---- loops


@behaviour
def accumulation(make):
    """Accumulation over three micro-batches with no_sync."""
    trainer = make(seeded(layers), ADAMW)
    for step in range(3):
        parts = trainer.part(batch(step)).chunk(3)
        for i, part in enumerate(parts):
            with trainer.no_sync() if i < 2 else contextlib.nullcontext():
                (mean_square(trainer, part) / 3).backward()
        trainer.step()
        trainer.zero_grad()
    return trainer.state()


@behaviour
def accumulation_without_no_sync(make):
    """Accumulation without no_sync."""
    trainer = make(seeded(layers), ADAMW)
    for step in range(3):
        for part in trainer.part(batch(step)).chunk(2):
            (mean_square(trainer, part) / 2).backward()
        trainer.step()
        trainer.zero_grad()
    return trainer.state()


@behaviour
def two_losses_on_one_graph(make):
    """Two backward passes over one graph."""
    trainer = make(seeded(layers))
    for step in range(3):
        output = trainer(trainer.part(batch(step)))
        output.square().mean().backward(retain_graph=True)
        (0.1 * output.pow(4).mean()).backward()
        trainer.step()
        trainer.zero_grad()
    return trainer.state()


@behaviour
def two_forwards_one_backward(make):
    """Two forward passes, one backward pass."""
    return train(
        make(seeded(layers)), loss_of=lambda model, x: (model(x) - model(x.flip(-1))).square().mean() + model(x).mean()
    )


@behaviour
def one_forward_one_backward(make):
    """Forward, forward, backward, backward, as in a pipeline (1F1B)."""
    trainer = make(seeded(layers))
    for step in range(3):
        first, second = (mean_square(trainer, part) / 2 for part in trainer.part(batch(step)).chunk(2))
        first.backward()
        second.backward()
        trainer.step()
        trainer.zero_grad()
    return trainer.state()


def state_of(*trainers):
    return {f"{i}.{name}": value for i, each in enumerate(trainers) for name, value in each.state().items()}


@behaviour
def two_models_in_one_loss(make):
    """Two models in one loss."""
    models = [make(seeded(layers, seed)) for seed in (1, 2)]
    for step in range(3):
        x = models[0].part(batch(step))
        (models[0](x) - models[1](x)).square().mean().backward()
        for model in models:
            model.step()
            model.zero_grad()
    return state_of(*models)


@behaviour
def two_models_whose_order_differs(make):
    """Two models in one loss, whose order differs between ranks."""
    models = [make(seeded(layers, seed)) for seed in (1, 2)]
    for step in range(3):
        x = models[0].part(batch(step))
        order = models if not dist.is_initialized() or dist.get_rank() == 0 else models[::-1]
        outputs = {id(model): model(x) for model in order}
        (outputs[id(models[0])] - outputs[id(models[1])]).square().mean().backward()
        for model in models:
            model.step()
            model.zero_grad()
    return state_of(*models)


@behaviour
def a_model_in_another(make):
    """One model's output is the other's input."""
    encoder, decoder = make(seeded(layers, 1)), make(seeded(layers, 2))
    for step in range(3):
        decoder(encoder(encoder.part(batch(step)))).square().mean().backward()
        for model in (encoder, decoder):
            model.step()
            model.zero_grad()
    return state_of(encoder, decoder)


@behaviour
def adversaries(make, freeze=False):
    """A generator and a discriminator in turns."""
    generator, judge = make(seeded(layers, 1)), make(seeded(lambda: nn.Sequential(layers(1), linear(1)), 2))
    for step in range(4):
        x = generator.part(batch(step))
        if freeze:
            judge.module.requires_grad_(step % 2 == 1)
        if step % 2:
            judge(generator(x).detach()).square().mean().backward()
            judge.step()
        else:
            judge(generator(x)).mean().backward()
            generator.step()
        for model in (generator, judge):
            model.zero_grad()
    return state_of(generator, judge)


@behaviour
def wrapped_a_second_time(make):
    """A module that is wrapped a second time."""
    module = seeded(layers)
    train(make(module), steps=2)
    return train(make(module, ADAMW), steps=2)


@behaviour
def wrapped_after_unfreezing(make):
    """A layer is unfrozen, and the module wrapped again."""
    module = seeded(frozen)
    train(make(module), steps=2)
    module.requires_grad_(True)
    return train(make(module), steps=2)


@behaviour
def unfrozen_in_between(make):
    """A layer is unfrozen in between."""
    module = seeded(frozen)
    trainer = make(module)
    train(trainer, steps=1)
    module.requires_grad_(True)
    return train(trainer, steps=2)


class Fails(torch.autograd.Function):
    """Nothing forward; backward it fails when told to."""

    now = False

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        if Fails.now:
            raise ArithmeticError("on purpose")
        return gradient


def failing(make, forget):
    module = seeded(
        lambda: Model(
            lambda self, x: self.c(Fails.apply(self.b(Fails.apply(self.a(x))))), a=Block(), b=Block(), c=linear()
        )
    )
    trainer = make(module)
    for step in range(3):
        Fails.now = step == 1
        try:
            mean_square(trainer, trainer.part(batch(step))).backward()
        except ArithmeticError:
            if forget:
                trainer.zero_grad()
        else:
            trainer.step()
            trainer.zero_grad()
    return trainer.state()


@behaviour
def backward_fails(make):
    """Backward raises, is caught, zero_grad, and training goes on."""
    return failing(make, forget=True)


@behaviour
def forward_fails(make):
    """Forward raises, is caught, and training goes on."""
    trainer = make(seeded(layers))
    train(trainer, steps=1)
    with contextlib.suppress(RuntimeError):
        trainer(torch.ones(2, WIDTH + 1).double())
    return train(trainer, steps=2)


@behaviour
def evaluation_in_between(make):
    """Evaluation without gradients between steps."""
    trainer = make(seeded(layers))
    for step in range(3):
        train(trainer, steps=1, inputs=lambda _, step=step: batch(step))
        with torch.no_grad():
            trainer.model.eval()
            trainer(trainer.part(batch(100)))
            trainer.model.train()
    return trainer.state()


@behaviour
def evaluation_on_rank_0(make):
    """Rank 0 alone evaluates the module, not the wrapper."""
    trainer = make(seeded(lambda: nn.Sequential(Block(), Block())))
    for step in range(2):
        train(trainer, steps=1, inputs=lambda _, step=step: batch(step))
        if not dist.is_initialized() or dist.get_rank() == 0:
            with torch.no_grad():
                trainer.module(batch(100))
    return trainer.state()


@behaviour
def gradient_penalty(make):
    """A gradient penalty: autograd.grad with create_graph, then backward."""

    def loss_of(model, x):
        x = x.clone().requires_grad_()
        output = model(x)
        (slope,) = torch.autograd.grad(output.sum(), x, create_graph=True)
        return output.square().mean() + 0.1 * slope.square().mean()

    return train(make(seeded(layers)), loss_of=loss_of)


@behaviour
def input_gradients_first(make):
    """autograd.grad of the inputs alone before the backward pass."""

    def loss_of(model, x):
        x = x.clone().requires_grad_()
        loss = mean_square(model, x)
        torch.autograd.grad(loss, x, retain_graph=True)
        return loss

    return train(make(seeded(layers)), loss_of=loss_of)


@behaviour
def backward_with_create_graph(make):
    """backward(create_graph=True)."""
    trainer = make(seeded(layers))
    for step in range(2):
        mean_square(trainer, trainer.part(batch(step))).backward(create_graph=True)
        trainer.step()
        trainer.zero_grad()
    return trainer.state()


@behaviour
def hook_of_the_user(make):
    """A hook of the user's that halves a gradient."""
    module = seeded(layers)
    module[0].weight.register_hook(lambda gradient: gradient / 2)
    return train(make(module))


@behaviour
def forward_hook_of_the_user(make):
    """A forward hook of the user's that replaces an output."""
    module = seeded(layers)
    module[2].register_forward_hook(lambda module, inputs, output: output * 2)
    return train(make(module))


@behaviour
def retained_gradient(make):
    """The gradient of an activation, kept by retain_grad, in the loss of the next step."""
    trainer, kept = make(seeded(layers)), torch.zeros(())
    for step in range(3):
        output = trainer(trainer.part(batch(step)))
        output.retain_grad()
        (output.square().mean() + kept.abs().mean()).backward()
        kept = output.grad
        trainer.step()
        trainer.zero_grad()
    return trainer.state()


for clip in ((0.1,), (0.1, float("inf")), (0.1, 1.0), (0.1, 3.0), (1e6,)):

    def clipped(make, clip=clip):
        return train(make(seeded(layers)), clip=clip)

    clipped.__doc__ = f"Clipping: clip_grad_norm_({', '.join(map(str, clip))})"
    behaviour(clipped)


@behaviour
def nonfinite(make):
    """Clipping with error_if_nonfinite, an infinite gradient, caught, and training goes on."""
    trainer = make(seeded(layers))
    train(trainer, steps=1)
    (mean_square(trainer, trainer.part(batch(1))) * float("inf")).backward()
    try:
        trainer.clip(1.0, error_if_nonfinite=True)
        trainer.step()
    except RuntimeError:
        trainer.zero_grad()
    return train(trainer, steps=1)


@behaviour
def scheduler(make):
    """A learning rate scheduler."""
    trainer = make(seeded(layers), ADAMW)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(trainer.optimizer, 4)
    return train(trainer, steps=4, before_step=lambda step: step and schedule.step())


@behaviour
def loaded_in_between(make):
    """A state_dict is loaded in between."""
    trainer = make(seeded(layers))
    train(trainer, steps=1)
    trainer.load(seeded(layers, 5).state_dict())
    return train(trainer, steps=2)


@behaviour
def average_of_weights(make):
    """AveragedModel of the wrapper."""
    trainer = make(seeded(layers))
    average = torch.optim.swa_utils.AveragedModel(trainer.model)
    train(trainer, before_step=lambda step: average.update_parameters(trainer.model))
    with torch.no_grad():
        return {"output": average(batch(100))}


@behaviour
def deep_copy(make):
    """deepcopy of the wrapper, to evaluate."""
    trainer = make(seeded(layers))
    train(trainer, steps=1)
    copied = copy.deepcopy(trainer.model)
    train(trainer)
    with torch.no_grad():
        return {"output": copied(batch(100)), **trainer.state()}


@behaviour
def saved_whole(make):
    """torch.save and torch.load of the wrapper, to evaluate."""
    trainer = make(seeded(lambda: nn.Sequential(linear(), linear())))
    train(trainer, steps=1)
    file = io.BytesIO()
    torch.save(trainer.model, file)
    file.seek(0)
    with torch.no_grad():
        return {"output": torch.load(file, weights_only=False)(batch(100))}


@behaviour
def buffers_of_rank_0(make):
    """A buffer that rank 0 changes after the start."""
    module = seeded(lambda: nn.Sequential(Block(), Block()))
    trainer = make(module)
    if not dist.is_initialized() or dist.get_rank() == 0:
        module[0].shift.add_(1.0)
    return train(trainer)


class SumOverRanks(torch.autograd.Function):
    """A collective of the program's own in the backward pass, as large as a gradient."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        import ringzero

        if dist.is_initialized():
            ringzero.all_reduce(torch.full((2 * (WIDTH * WIDTH + WIDTH),), 1e6).double())
        return gradient


@behaviour
def own_collective_in_backward(make):
    """The program's own all-reduce in the backward pass."""
    module = seeded(
        lambda: nn.Sequential(*(Model(lambda self, x: SumOverRanks.apply(self.a(x)), a=linear()) for _ in range(4)))
    )
    return train(make(module))


@behaviour
def own_collective_of_torch_in_forward(make):
    """The program's own torch.distributed all-reduce in the forward pass."""

    def forward(self, x):
        if dist.is_initialized():
            dist.all_reduce(torch.ones(5))
        return self.a(x)

    return train(make(seeded(lambda: Model(forward, a=linear()))))


@behaviour
def compiled_blocks(make):
    """torch.compile of each block."""
    module = seeded(lambda: nn.Sequential(Block(), Block()))
    for i in range(2):
        module[i] = torch.compile(module[i], backend="aot_eager")
    return {name.replace("_orig_mod.", ""): value for name, value in train(make(module)).items()}


@behaviour
def compiled_whole(make):
    """torch.compile of the wrapped model."""
    trainer = make(seeded(lambda: nn.Sequential(Block(), Block())))
    compiled = torch.compile(trainer.model, backend="aot_eager")
    return train(trainer, loss_of=lambda _, x: compiled(x).square().mean())


@behaviour
def overwritten_in_between(make):
    """A parameter is overwritten in place in between."""
    module = seeded(layers)
    trainer = make(module)
    train(trainer, steps=1)
    with torch.no_grad():
        module[0].weight.fill_(0.1)
    return train(trainer, steps=2)


@behaviour
def no_gradient_at_all(make):
    """A step without a backward pass."""
    trainer = make(seeded(layers), ADAMW)
    trainer.step()
    return train(trainer)


@behaviour
def loss_weight_by_name(make):
    """A penalty of the weights themselves in the loss."""

    def loss_of(model, x):
        penalty = sum(p.square().sum() for p in model.module.parameters())
        return model(x).square().mean() + 0.01 * penalty

    return train(make(seeded(layers)), loss_of=loss_of)


simple("Dropout of nothing", lambda: nn.Sequential(linear(), nn.Dropout(0.0), linear()))
simple(
    "Attention",
    lambda: Model(lambda self, x: self.a(x, x, x)[0], a=nn.MultiheadAttention(WIDTH, 2, batch_first=True)),
    inputs=lambda step: batch(step, 4, WIDTH),
)
simple("A bilinear layer", lambda: Model(lambda self, x: self.a(x, x.flip(-1)), a=nn.Bilinear(WIDTH, WIDTH, 2)))
simple("A parameter larger than all others", lambda: nn.Sequential(linear(200), nn.Tanh(), nn.Linear(200, 1)))


@behaviour
def set_to_zero(make):
    """zero_grad(set_to_none=False)."""
    trainer = make(seeded(layers), ADAMW)
    for step in range(3):
        mean_square(trainer, trainer.part(batch(step))).backward()
        trainer.step()
        trainer.model.zero_grad(set_to_none=False)
    return trainer.state()


@behaviour
def loss_scaled_by_hand(make):
    """A loss scaled up by hand, gradients clipped at the scaled norm."""
    return train(make(seeded(layers)), loss_of=lambda model, x: 1024 * mean_square(model, x), clip=(10.0,))


@behaviour
def detached_half(make):
    """A loss that reaches half of the layers, announced."""
    return train(
        make(
            seeded(lambda: Model(lambda self, x: self.b(self.a(x).detach()), a=linear(), b=linear())), find_unused=True
        )
    )


def is_first():
    return not dist.is_initialized() or dist.get_rank() == 0


@behaviour
def scaled_losses(make):
    """GradScaler, and a step in which one gradient of rank 0 is not finite."""
    module, spoiled = seeded(layers), torch.zeros(WIDTH)
    module[0].bias.register_hook(lambda gradient: gradient + spoiled)
    trainer = make(module, ADAMW)
    scaler, stepped = trainer.scaler(init_scale=1024.0)
    for step in range(4):
        spoiled[0] = float("inf") if step == 1 and is_first() else 0.0  # one number, so only one rank's shard has it
        scaler.scale(mean_square(trainer, trainer.part(batch(step)))).backward()
        scaler.unscale_(stepped)
        trainer.clip(0.5)
        scaler.step(stepped)
        scaler.update()
        trainer.zero_grad()
    return trainer.state() | {"scale": torch.tensor(scaler.get_scale())}


@behaviour
def group_added(make):
    """A layer is unfrozen, and add_param_group has it trained."""
    module = seeded(frozen)
    trainer = make(module, ADAMW)
    train(trainer, steps=2)
    unfrozen = [p.requires_grad_() for p in module.parameters() if not p.requires_grad]
    trainer.add_group(unfrozen, lr=0.05)
    return train(trainer, steps=3)


@behaviour
def toggled(make):
    """A discriminator that is frozen while its generator steps."""
    return adversaries(make, freeze=True)


@behaviour
def weights_read(make):
    """The norm of the weights is read between steps, and is a factor of the next loss."""
    trainer, norms = make(seeded(layers)), []
    for step in range(3):
        with trainer.whole(), torch.no_grad():
            norms.append(sum(p.square().sum() for p in trainer.module.parameters()))
        (norms[-1] * mean_square(trainer, trainer.part(batch(step)))).backward()
        trainer.step()
        trainer.zero_grad()
    return trainer.state() | {"norms": torch.stack(norms)}


@behaviour
def weights_clamped(make):
    """Weights are clamped after each step, as in a Wasserstein GAN."""
    trainer = make(seeded(layers), ADAMW)
    for step in range(3):
        mean_square(trainer, trainer.part(batch(step))).backward()
        trainer.step()
        trainer.zero_grad()
        with trainer.whole(write=True), torch.no_grad():
            for parameter in trainer.module.parameters():
                parameter.clamp_(-0.1, 0.1)
    return trainer.state()
