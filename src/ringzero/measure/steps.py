"""One training step of an MLP, naive and overlapped, and one message: what a network does to them. Run on each rank.

Naive: after the backward pass, gradients are summed one after another. Overlapped: the sum of each gradient starts
when the backward pass has made it.
"""

import statistics
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn

WIDTH, LAYERS, BATCH = 512, 12, 512  # 12.6 MB of gradients


def transfer_seconds(size: int, repeats: int) -> float:
    """On two ranks: the median time of ``size`` bytes from rank 0 to rank 1, as rank 1 sees it; 0.0 on rank 0."""
    tensor, times = torch.zeros(size // 4), []
    for _ in range(repeats):
        dist.barrier()
        start = time.perf_counter()
        if dist.get_rank() == 0:
            dist.send(tensor, 1)
        else:
            dist.recv(tensor, 0)
        times.append(time.perf_counter() - start)
    return statistics.median(times) if dist.get_rank() else 0.0


def step_seconds(steps: int) -> tuple[float, float]:
    """On each rank: ``(naive, overlapped)``, the median seconds of a training step, taken in turns."""
    model, loss = _model_and_loss()
    naive: list[float] = []
    overlapped: list[float] = []
    for _ in range(steps):
        for step, samples in ((naive_step, naive), (overlapped_step, overlapped)):
            dist.barrier()
            start = time.perf_counter()
            step(model, loss)
            samples.append(time.perf_counter() - start)
    return statistics.median(naive[1:] or naive), statistics.median(overlapped[1:] or overlapped)  # the first warms up


def _model_and_loss() -> tuple[nn.Module, Callable[[], Tensor]]:
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(LAYERS)]
    model, batch = nn.Sequential(*layers), torch.randn(BATCH, WIDTH)
    return model, lambda: model(batch).square().mean()


def naive_step(model: nn.Module, loss: Callable[[], Tensor]) -> None:
    """Backward, then one all-reduce after another. Leaves the mean gradients of all ranks in ``model``."""
    model.zero_grad()
    loss().backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad.div_(dist.get_world_size())


def overlapped_step(model: nn.Module, loss: Callable[[], Tensor]) -> None:
    """The all-reduce of each gradient starts during the backward pass, when it is complete; the end waits for all."""
    model.zero_grad()
    in_flight = []

    def start(parameter: Tensor) -> None:
        in_flight.append((dist.all_reduce(parameter.grad, async_op=True), parameter))

    hooks = [parameter.register_post_accumulate_grad_hook(start) for parameter in model.parameters()]
    loss().backward()
    for work, parameter in in_flight:
        work.wait()
        parameter.grad.div_(dist.get_world_size())
    for hook in hooks:
        hook.remove()
