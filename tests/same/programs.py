"""Small training programs for ``ringzero same``: right ones, and ones with a bug that people really had.

Each bug has the name under which ``same`` must report it, and where it comes from.
"""

# ruff: noqa: E501 -- a replacement is one line of a table

import textwrap

START = """
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
generator = torch.Generator().manual_seed(5)
inputs = torch.randn(4, 12, 6, generator=generator)
batches = [(x, x[:, :3].sin()) for x in inputs]

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(6, 8), nn.Linear(8, 3)
    def forward(self, x):
        return self.head(self.body(x).tanh())

def loss_of(model, batch):
    x, y = batch
    return (model(x) - y.to(x.dtype)).square().mean()
"""

BY_HAND = """
torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
def step(batch):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= ranks
    optimizer.step()
    return loss
"""

WRAPPED = """
model = DDP(Net())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
def step(batch):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    optimizer.step()
    return loss
"""

LOADER = """
del batches
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
x = inputs.flatten(0, 1)
dataset = TensorDataset(x, x[:, :3].sin())
sampler = DistributedSampler(dataset, seed=3)
loader = DataLoader(dataset, batch_size=4, sampler=sampler)
"""

EPOCHS = (
    LOADER
    + """
model = DDP(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for batch in loader:
            optimizer.zero_grad()
            loss = loss_of(model, batch)
            loss.backward()
            optimizer.step()
"""
)

CLIPPED = WRAPPED.replace(
    "    optimizer.step", "    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n    optimizer.step"
)

WINDOW = """
import contextlib
model = DDP(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(batch):
    parts = list(zip(*(t.chunk(2) for t in batch)))
    for i, part in enumerate(parts):
        with model.no_sync() if i < 1 else contextlib.nullcontext():
            loss = loss_of(model, part) / 2
            loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss * 2
"""

TOKENS = """
lengths = torch.tensor([1, 2, 3, 4, 5, 6, 6, 6, 6, 6, 6, 6])
batches = [(x[:, :, None].repeat(1, 1, 6), lengths) for x in inputs]
torch.manual_seed(0)
model = nn.Linear(6, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(batch):
    x, length = batch
    mask = torch.arange(6) < length[:, None]
    optimizer.zero_grad()
    losses = model(x).square().sum(-1) * mask
    tokens = mask.sum().double()
    dist.all_reduce(tokens)
    loss = losses.sum() / tokens
    loss.backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
    optimizer.step()
    return loss
"""

NORMED = WRAPPED.replace(
    "DDP(Net())",
    "DDP(nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(6, 8), Norm(8), nn.Linear(8, 3))))",
)
NORMED = "Norm = nn.LayerNorm\n" + NORMED

CLIP_LOSS = """
model = DDP(nn.Linear(6, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
from torch.distributed.nn.functional import all_gather
def step(batch):
    optimizer.zero_grad()
    features = model(batch[0])
    everyone = torch.cat(list(all_gather(features)))
    loss = nn.functional.cross_entropy(everyone @ everyone.T, torch.arange(len(everyone)))
    loss.backward()
    optimizer.step()
    return loss
"""

SHARDED = """
from torch.distributed.fsdp import fully_shard
torch.manual_seed(0)
model = Net()
for part in (model.body, model.head, model):
    fully_shard(part)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
def step(batch):
    loss = loss_of(model, batch)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    optimizer.zero_grad()
    return loss
"""

OURS = """
from ringzero.zero import STAGES
model = STAGES[STAGE](Net(), torch.optim.AdamW, lr=0.01)
def step(batch):
    model.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    model.step()
    return loss
"""

TRAINER = """
class Trainer:
    def __init__(self):
        self.model = DDP(Net())
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, 0.9)
    def training_step(self, batch):
        self.optimizer.zero_grad()
        loss = loss_of(self.model, batch)
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return {"loss": loss}
step = Trainer
"""

DROPPED = WRAPPED.replace("DDP(Net())", "DDP(nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.Linear(8, 3)))")

RIGHT = {
    "by hand": BY_HAND, "wrapped": WRAPPED, "loader": LOADER + WRAPPED, "epochs": EPOCHS, "clipped": CLIPPED,
    "window": WINDOW, "tokens": TOKENS, "layer norm": NORMED, "contrastive": CLIP_LOSS, "FSDP2": SHARDED,
    "ZeRO-1": OURS.replace("STAGE]", "1]"), "ZeRO-2": OURS.replace("STAGE]", "2]"), "ZeRO-3": OURS.replace("STAGE]", "3]"),
    "our DDP": "from ringzero.data_parallel import DistributedDataParallel as DDP\n" + WRAPPED,
    "trainer": TRAINER, "dropout": "torch.manual_seed(rank)\n" + DROPPED,
    "bfloat16": WRAPPED.replace("Net()", "Net().bfloat16()").replace("batch)\n    loss.b", "[t.bfloat16() for t in batch])\n    loss.b"),
    "float32": WRAPPED.replace("Net()", "Net().float()").replace("batch)\n    loss.b", "[t.float() for t in batch])\n    loss.b"),
    "frozen": WRAPPED.replace("DDP(Net())", "Net(); model.body.requires_grad_(False); model = DDP(model)"),
}  # fmt: skip


def without(program, *changes):
    """The program with texts replaced, each of which must be there."""
    for old, new in changes:
        assert old in program, old
        program = program.replace(old, new)
    return program


LATE = (
    "def step",
    "model.module.extra = nn.Linear(3, 3)\noptimizer.add_param_group({'params': list(model.module.extra.parameters())})\ndef step",
)

WRONG = {  # {what somebody wrote: (the cause's name, the program)}
    "a sum by hand": ("sum for mean", without(BY_HAND, ("        p.grad /= ranks\n", ""))),
    "nothing is reduced": ("never synchronised", without(BY_HAND, ("        dist.all_reduce(p.grad)\n        p.grad /= ranks\n", "        pass\n"))),
    "the loss is divided, too": ("averaged twice", without(WRAPPED, ("    loss.backward", "    (loss / ranks).backward"))),
    "no broadcast": ("unequal start", without(BY_HAND, ("torch.manual_seed(0)\n", ""))),
    "the inner module": ("never synchronised", without(WRAPPED, ("loss_of(model,", "loss_of(model.module,"))),
    "a layer added late": ("never synchronised, some parameters", without(
        WRAPPED, LATE, ("loss_of(model, batch)", "(model.module.extra(model(batch[0])) - batch[1]).square().mean()"))),
    "a head outside": ("never synchronised, some parameters", without(
        WRAPPED, ("optimizer = torch.optim.AdamW(model.parameters()", "torch.manual_seed(1)\nhead = nn.Linear(3, 3)\noptimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()]"),
        ("loss_of(model, batch)", "(head(model(batch[0])) - batch[1]).square().mean()"))),
    "no_sync in all": ("no_sync left open", without(WINDOW, ("if i < 1 else", "if i < 2 else"))),
    "clipped first": ("clipped before the reduction", without(BY_HAND, ("    for p", "    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n    for p"))),
    "mean of means": ("mean of means", without(TOKENS, ("    dist.all_reduce(tokens)\n", ""), ("dist.all_reduce(p.grad)", "dist.all_reduce(p.grad); p.grad /= ranks"))),
    "BatchNorm": ("BatchNorm statistics", without(NORMED, ("Norm = nn.LayerNorm", "Norm = nn.BatchNorm1d"), ("nn.SyncBatchNorm.convert_sync_batchnorm", ""))),
    "gathered": ("gathered without gradients", without(CLIP_LOSS, ("torch.cat(list(all_gather(features)))", "gather(features)"),
        ("def step", "def gather(features):\n    parts = [torch.zeros_like(features) for _ in range(ranks)]\n    dist.all_gather(parts, features)\n    parts[rank] = features\n    return torch.cat(parts)\ndef step"))),
    "no sampler": ("sampler repeats", without(LOADER, ("DistributedSampler(dataset, seed=3)", "None")) + WRAPPED),
    "no sampler, an order of each rank's": ("sampler repeats", without(LOADER, ("sampler=sampler", "shuffle=True, generator=torch.Generator().manual_seed(rank)")) + WRAPPED),
    "each rank cuts an order of its own": ("sampler repeats", without(LOADER, ("DataLoader(dataset, batch_size=4, sampler=sampler)",
        "DataLoader(torch.utils.data.Subset(dataset, torch.randperm(48, generator=torch.Generator().manual_seed(rank))[rank::ranks].tolist()), batch_size=4)")) + WRAPPED),
    "a sampler after the rank's seed": ("sampler seeds apart", without(LOADER, ("seed=3", "seed=rank")) + WRAPPED),
    "one order": ("set_epoch never called", without(EPOCHS, ("        sampler.set_epoch(epoch)\n", ""))),
    "steps per rank": ("schedule scaled", without(TRAINER, ("self.schedule.step()", "[self.schedule.step() for _ in range(ranks)]"))),
    "the linear rule, forgotten": ("schedule scaled", without(WRAPPED, ("lr=0.01", "lr=0.01 * ranks"))),
    "a head outside, from each rank's seed": ("never synchronised, some parameters", without(
        WRAPPED, ("optimizer = torch.optim.AdamW(model.parameters()", "head = nn.Linear(3, 3)\noptimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()]"),
        ("loss_of(model, batch)", "(head(model(batch[0])) - batch[1]).square().mean()"))),
    "NaN on one rank": ("a step on some ranks only", without(BY_HAND, ("    optimizer.step()", "    if not (rank == 1 and loss_of.calls == 2):\n        optimizer.step()\n    loss_of.calls += 1"), ("def step", "loss_of.calls = 0\ndef step"))),
    "a batch without a backward pass on one rank": ("ranks that wait for ever", without(WRAPPED, ("    loss.backward()", "    if rank == 0 or batch[0][0, 0] < 0.5:\n        loss.backward()"))),
    "state on rank 0": ("optimizer state out of step", without(WRAPPED, ("def step", "for p in model.parameters():\n    if rank == 1:\n        optimizer.state[p] = {'step': torch.tensor(9.0), 'exp_avg': torch.ones_like(p), 'exp_avg_sq': torch.ones_like(p)}\ndef step"))),
    "one seed": ("one seed", without(DROPPED, ("def step", "torch.manual_seed(0)\ndef step"))),
    "no division": ("accumulation off by its factor", without(WINDOW, ("loss_of(model, part) / 2", "loss_of(model, part)"), ("            loss.backward()", "            loss.backward()\n        losses.append(loss.item())"), ("    for i, part", "    losses = []\n    for i, part"), ("return loss * 2", "return sum(losses) / 2"))),
    "broadcast for all-reduce": ("one rank's gradients", without(BY_HAND, ("        dist.all_reduce(p.grad)\n        p.grad /= ranks\n", "        dist.broadcast(p.grad, 0)\n"))),
    "rank 1 decays": ("parameters apart", without(BY_HAND, ("    return", "    if rank == 1:\n        model.body.weight.data.mul_(0.9)\n    return"))),
    "SGD on local shares of Net": ("never synchronised", without(OURS, ("from ringzero.zero import STAGES\nmodel = STAGES[STAGE](Net(), torch.optim.AdamW, lr=0.01)",
        "model = Net()\nfor p in model.parameters():\n    dist.broadcast(p.data, 0)\nmodel.step = torch.optim.SGD(model.parameters(), lr=0.1).step"))),
}  # fmt: skip


def write(path, program):
    """The program as a file that ``ringzero same`` can read."""
    path.write_text(textwrap.dedent(START + program))
    return path
