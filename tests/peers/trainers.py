"""Trainers under one interface: ``make(module, optimizer, **options)`` wraps a module and makes its optimizer."""

from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn

from ringzero.data_parallel import DistributedDataParallel, FlatDataParallel, NaiveDataParallel
from ringzero.zero import STAGES, GradScaler

SGD = (torch.optim.SGD, {"lr": 0.1})


class OneProcess:
    """A plain module and optimizer, on the whole batch: what all others are compared with."""

    def __init__(self, module, optimizer=SGD, **options):
        self.module, (kind, arguments) = module, optimizer
        self.options = options
        self.model = self.wrapped(module, options)
        self.optimizer = self.optimizer_of(kind, arguments)

    def wrapped(self, module, options):
        return module

    def optimizer_of(self, kind, arguments):
        return kind([p for p in self.module.parameters() if p.requires_grad], **arguments)

    def __call__(self, *args, **kwargs):
        return self.model(*args, **kwargs)

    def step(self):
        self.optimizer.step()

    def zero_grad(self):
        self.model.zero_grad()

    def no_sync(self):
        return nullcontext()

    def clip(self, *args, **kwargs):
        return torch.nn.utils.clip_grad_norm_(self.module.parameters(), *args, **kwargs)

    def scaler(self, **options):
        """A scaler of losses, and what it unscales and steps."""
        return torch.amp.GradScaler(torch.get_default_device().type, **options), self.optimizer

    def add_group(self, parameters, **options):
        self.optimizer.add_param_group({"params": list(parameters), **options})

    def whole(self, write=False):
        """Inside, parameters may be read, and with ``write`` changed."""
        return nullcontext()

    def state(self):
        return {name: p.detach().clone() for name, p in self.module.named_parameters()}

    def load(self, state):
        self.module.load_state_dict(state)

    def part(self, whole):
        """This rank's part of a batch."""
        return whole


class OnRanks(OneProcess):
    def part(self, whole):
        return whole[dist.get_rank() :: dist.get_world_size()]

    def no_sync(self):
        return self.model.no_sync()


def expects_unused(options):
    """``find_unused``, or the names of parameters that are ``unused``."""
    return bool(options.get("find_unused") or options.get("unused"))


def _ours(kind, **fixed):
    class Ours(OnRanks):
        def wrapped(self, module, options):
            if kind is DistributedDataParallel:
                return kind(module, **fixed, find_unused=expects_unused(options))
            return kind(module, **fixed, unused=options.get("unused", ()))

    return Ours


def zero(number, home=None, travel=None):
    """A stage; ``home`` and ``travel`` make its home and its travel."""

    class Zero(OnRanks):
        def wrapped(self, module, options):
            return None  # it makes its optimizer itself

        def optimizer_of(self, kind, arguments):
            find_unused = expects_unused(self.options)
            small = {} if number == 3 else {"bucket_cap_mb": 0.0005}
            small["mixed_precision"] = self.options.get("mixed_precision")
            self.model = STAGES[number](
                self.module, kind, find_unused=find_unused, home=home and home(), travel=travel and travel(), **small,
                **arguments,
            )  # fmt: skip
            return self.model.optimizer

        def step(self):
            self.model.step()

        def clip(self, *args, **kwargs):
            return self.model.clip_grad_norm_(*args, **kwargs)

        def scaler(self, **options):
            return GradScaler(torch.get_default_device().type, **options), self.model

        def add_group(self, parameters, **options):
            self.model.add_param_group({"params": list(parameters), **options})

        def whole(self, write=False):
            return self.model.whole_parameters(write)

        def state(self):
            trained = self.model.state_dict()
            return {name: trained[name] for name, _ in self.module.named_parameters()}

        def load(self, state):
            self.model.load_state_dict(state)

    return Zero


class TorchsDDP(OnRanks):
    def wrapped(self, module, options):
        return nn.parallel.DistributedDataParallel(module, find_unused_parameters=expects_unused(options))


class TorchsZeroRedundancy(TorchsDDP):
    def optimizer_of(self, kind, arguments):
        from torch.distributed.optim import ZeroRedundancyOptimizer

        trained = [p for p in self.module.parameters() if p.requires_grad]
        return ZeroRedundancyOptimizer(trained, kind, **arguments)


class TorchsFSDP2(OnRanks):
    def wrapped(self, module, options):
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import fully_shard

        mesh = DeviceMesh("cpu", list(range(dist.get_world_size())))
        for child in module.children():
            if next(child.parameters(), None) is not None and not isinstance(child, nn.ModuleList):
                fully_shard(child, mesh=mesh)
        return fully_shard(module, mesh=mesh)

    def no_sync(self):
        return nullcontext()  # gradients that are reduced add up as well

    def clip(self, *args, **kwargs):
        return super().clip(*args, **kwargs).full_tensor()

    def state(self):
        return {name: p.detach().full_tensor().clone() for name, p in self.module.named_parameters()}

    def load(self, state):
        from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict

        set_model_state_dict(self.module, state, options=StateDictOptions(full_state_dict=True))


OURS = {
    "naive": _ours(NaiveDataParallel),
    "flat": _ours(FlatDataParallel),
    "DDP": _ours(DistributedDataParallel, bucket_cap_mb=0.0005),
    "DDP, ring": _ours(DistributedDataParallel, bucket_cap_mb=0.0005, algorithm="ring"),
    "ZeRO-1": zero(1),
    "ZeRO-2": zero(2),
    "ZeRO-3": zero(3),
}
TORCHS = {"torch DDP": TorchsDDP, "torch ZeRO-R": TorchsZeroRedundancy, "torch FSDP2": TorchsFSDP2}
TRAINERS = OURS | TORCHS
