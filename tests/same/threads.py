"""Bugs that people described in public threads, each as a small program, and the cause that ``same`` must name.

A thread is a repository on GitHub and the number of an issue or a pull request. The programs are written anew: they do
what the thread says went wrong, on a model of a few numbers.
"""

# ruff: noqa: E501 -- programs and tables

from typing import NamedTuple


class Thread(NamedTuple):
    """``where`` it was told, ``what`` went wrong, the ``cause`` that must be named, and the ``program``."""

    where: str
    what: str
    cause: str
    program: str
    ranks: int = 2


TEXTS = """
lengths = torch.tensor([2, 3, 4, 5, 6, 7, 7, 7, 7, 7, 7, 7])
ids = torch.randint(0, 20, (4, 12, 8), generator=generator)
padding = torch.arange(7) >= lengths[:, None]
batches = [{"ids": each[:, :-1], "labels": each[:, 1:].masked_fill(padding, -100)} for each in ids]

class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(20, 8), nn.Linear(8, 20)
    def forward(self, ids):
        return self.head(self.words(ids).cumsum(1).tanh())

def said(model, batch, reduction="mean"):
    logits = model(batch["ids"]).flatten(0, 1)
    return nn.functional.cross_entropy(logits, batch["labels"].flatten(), ignore_index=-100, reduction=reduction)
"""

PAIRS = """
class Twins(nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.text = nn.Linear(6, 4), nn.Linear(3, 4)
    def forward(self, image, text):
        return nn.functional.normalize(self.image(image), dim=-1), nn.functional.normalize(self.text(text), dim=-1)

model = DDP(Twins())
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
"""

STORED = """
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, TensorDataset
del batches
x = inputs.flatten(0, 1)
dataset = TensorDataset(x, x[:, :3].sin())
"""

THREADS = [
    # What the loss is divided by
    Thread("huggingface/transformers#34242", "tokens are averaged on each rank, and then the ranks", "mean of means", TEXTS + """
model = DDP(Speaker())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
def step(batch):
    optimizer.zero_grad()
    loss = said(model, batch)
    loss.backward()
    optimizer.step()
    return {"loss": loss}
"""),
    Thread("huggingface/transformers#34191", "each micro-batch of an accumulation is a mean over its own tokens", "mean of means", TEXTS + """
model = DDP(Speaker())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(batch):
    halves = [dict(zip(batch, values)) for values in zip(*(t.chunk(2) for t in batch.values()))]
    with model.no_sync():
        first = said(model, halves[0]) / 2
        first.backward()
    second = said(model, halves[1]) / 2
    second.backward()
    optimizer.step()
    optimizer.zero_grad()
    return first + second
"""),
    Thread("pytorch/pytorch#67253", "one rank has a larger batch, and DDP counts the ranks alike", "mean of means", """
def mine():
    for x, y in batches:
        cut = [0, 8, 12] if ranks == 2 else [0, 12]
        yield x[cut[rank]:cut[rank + 1]], y[cut[rank]:cut[rank + 1]]
from torch.utils.data import DataLoader, IterableDataset
class Shares(IterableDataset):
    def __iter__(self):
        return mine()
loader = DataLoader(Shares(), batch_size=None)
model = DDP(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    for batch in loader:
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()
"""),
    Thread("verl-project/verl-SpeCo#29", "a loss that all_reduce added up is differentiated, and FSDP averages once more", "averaged twice", TEXTS + """
from torch.distributed.fsdp import fully_shard
torch.manual_seed(3)
model = fully_shard(Speaker())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
def step(batch):
    total = torch.stack([said(model, batch, "sum"), (batch["labels"] >= 0).sum().double()])
    dist.all_reduce(total)
    loss = total[0] / total[1].detach()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss
"""),
    Thread("sanderwood/bgpt#5", "the loss is reduced, divided by the number of ranks and sent back before the backward pass", "averaged twice", """
model = DDP(Net())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
def process_one_batch(batch):
    loss = loss_of(model, batch)
    if ranks > 1:
        loss = loss.unsqueeze(0)
        dist.reduce(loss, dst=0)
        loss = loss / ranks
        dist.broadcast(loss, src=0)
    return loss
def step(batch):
    loss = process_one_batch(batch)
    loss.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.sum()
"""),
    Thread("OpenNMT/OpenNMT-py#2451", "a loss over the batch of all ranks, and gradients that are averaged in spite of it", "averaged twice", """
torch.manual_seed(1)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
def step(batch):
    x, y = batch
    normalization = torch.tensor([float(len(x))])
    dist.all_reduce(normalization)
    model.zero_grad()
    loss = (model(x) - y.to(x.dtype)).square().sum() / normalization.item()
    loss.backward()
    grads = [p.grad for p in model.parameters()]
    flat = torch.cat([g.view(-1) for g in grads])
    dist.all_reduce(flat)
    flat.div_(ranks)
    for g, part in zip(grads, flat.split([g.numel() for g in grads])):
        g.copy_(part.view_as(g))
    optimizer.step()
    return loss
"""),
    Thread("pytorch/pytorch#37359", "a loss that is a sum over samples, and DDP averages the gradients", "mean of sums", """
model = DDP(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = nn.MSELoss(reduction="sum")
def step(batch):
    optimizer.zero_grad()
    loss = criterion(model(batch[0]), batch[1].to(batch[0].dtype))
    loss.backward()
    optimizer.step()
    return loss
"""),
    Thread("neuralmagic/sparseml#135", "the loss is multiplied by the number of ranks though it is a mean", "sum for mean", """
class Trainer:
    def __init__(self):
        self.model = DDP(Net())
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.003)
    def train_step(self, batch):
        self.optimizer.zero_grad()
        loss = loss_of(self.model, batch)
        if dist.is_initialized():
            loss = loss * dist.get_world_size()
        loss.backward()
        self.optimizer.step()
        return loss
step = Trainer
"""),
    Thread("NVIDIA-NeMo/Automodel#3830", "local means, multiplied by the number of ranks, over an accumulation", "sum for mean", """
from torch.distributed.fsdp import fully_shard
torch.manual_seed(7)
model = Net()
fully_shard(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
def step(batch):
    for part in zip(*(t.chunk(2) for t in batch)):
        (loss_of(model, part) * ranks / 2).backward()
    optimizer.step()
    optimizer.zero_grad()
"""),
    Thread("NVlabs/stylegan3#184", "gradients of an accumulation are added up and not divided by its length", "accumulation off by its factor", """
model = DDP(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def step(batch):
    losses = []
    for x, y in zip(*(t.split(2) for t in batch)):
        loss = loss_of(model, (x, y))
        loss.backward()
        losses.append(loss.detach())
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    return torch.stack(losses).mean()
"""),
    # Losses over features of all ranks
    Thread("mlfoundations/open_clip#616", "a local loss on features that were gathered without their gradients", "gathered without gradients", PAIRS + """
def gather(features):
    if ranks == 1:
        return features
    parts = [torch.zeros_like(features) for _ in range(ranks)]
    dist.all_gather(parts, features)
    return torch.cat(parts)
def step(batch):
    optimizer.zero_grad()
    image, text = model(batch[0], batch[1].to(batch[0].dtype))
    labels = torch.arange(len(image)) + rank * len(image)
    loss = nn.functional.cross_entropy(10 * image @ gather(text).T, labels)
    loss = (loss + nn.functional.cross_entropy(10 * text @ gather(image).T, labels)) / 2
    loss.backward()
    optimizer.step()
    return loss
"""),
    Thread("ShiqiYu/OpenGait#36", "a loss on pairs of all ranks, in which only the own features have gradients", "gathered without gradients", """
model = DDP(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
@torch.no_grad()
def everyone(features):
    parts = [torch.empty_like(features) for _ in range(ranks)]
    dist.all_gather(parts, features.detach())
    return parts
def step(batch):
    optimizer.zero_grad()
    features = model(batch[0])
    parts = everyone(features)
    parts[rank] = features
    whole = torch.cat(parts)
    loss = (1 + (whole[:, None] - whole[None]).square().sum(-1)).log().mean()
    loss.backward()
    optimizer.step()
    return loss
"""),
    # What is not synchronised
    Thread("OpenTSLM/OpenTSLM#49", "the loss is computed by a method of the module in the wrapper", "never synchronised", """
class Model(Net):
    def compute_loss(self, batch):
        return loss_of(self, batch)
model = DDP(Model())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
def unwrapped():
    return model.module if isinstance(model, DDP) else model
def step(batch):
    optimizer.zero_grad()
    loss = unwrapped().compute_loss(batch)
    loss.backward()
    optimizer.step()
    return loss.item()
"""),
    Thread("pytorch/pytorch#12603", "a parameter is replaced after the model was wrapped", "never synchronised", """
torch.manual_seed(0)
model = DDP(Net())
model.module.head.weight = nn.Parameter(torch.full((3, 8), 0.1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(batch):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    optimizer.step()
"""),
    Thread("pytorch/pytorch#112152", "a model has layers that its forward pass leaves out", "never synchronised", """
class Half(Net):
    def forward(self, x):
        return self.head(x.repeat(1, 2)[:, :8])
model = DDP(Half())
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
def step(batch):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    optimizer.step()
    return loss
"""),
    Thread("Lightning-AI/pytorch-lightning#20340", "layers that were frozen when the model was wrapped are set free later", "never synchronised, some parameters", """
net = Net()
net.body.requires_grad_(False)
model = DDP(net)
optimizer = torch.optim.SGD(net.head.parameters(), lr=0.1)
calls = []
def step(batch):
    if len(calls) == 2:
        net.body.requires_grad_(True)
        optimizer.add_param_group({"params": list(net.body.parameters()), "lr": 0.01})
    calls.append(1)
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    optimizer.step()
    return loss
"""),
    Thread("kohya-ss/sd-scripts#989", "adapters that replace a layer's forward are not inside the wrapper", "never synchronised, some parameters", """
base = Net()
base.body.requires_grad_(False)
torch.manual_seed(4)
down, up = nn.Linear(6, 2, bias=False), nn.Linear(2, 8, bias=False)
plain = base.body.forward
base.body.forward = lambda x: plain(x) + up(down(x))
model = DDP(base)
optimizer = torch.optim.AdamW([*model.module.head.parameters(), *down.parameters(), *up.parameters()], lr=0.01)
def step(batch):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    optimizer.step()
    return loss
"""),
    Thread("modelscope/FunASR#3472", "no_sync is left for the first micro-batch of an accumulation and not for the last", "no_sync left open", """
import contextlib
model = DDP(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
accum_grad = 2
def step(batch):
    for batch_idx, part in enumerate(zip(*(t.chunk(accum_grad) for t in batch))):
        with contextlib.nullcontext() if batch_idx % accum_grad == 0 else model.no_sync():
            (loss_of(model, part) / accum_grad).backward()
        if (batch_idx + 1) % accum_grad == 0:
            optimizer.step()
            optimizer.zero_grad()
"""),
    Thread("karpathy/build-nanogpt#30", "require_backward_grad_sync is set between the forward and the backward pass", "no_sync left open", """
model = DDP(Net())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
grad_accum_steps = 3
def step(batch):
    optimizer.zero_grad()
    for micro_step, part in enumerate(zip(*(t.chunk(grad_accum_steps) for t in batch))):
        loss = loss_of(model, part) / grad_accum_steps
        model.require_backward_grad_sync = micro_step == grad_accum_steps - 1
        loss.backward()
    optimizer.step()
"""),
    Thread("pytorch/pytorch#108331", "what should reach all nodes is sent inside each node only", "a part of the ranks only", """
torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
node_size = 2
nodes = [list(range(first, min(first + node_size, ranks))) for first in range(0, ranks, node_size)]
group = [dist.new_group(node) for node in nodes][rank // node_size]
def step(batch):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    for p in model.parameters():
        dist.all_reduce(p.grad, group=group)
        p.grad /= len(nodes[rank // node_size])
    optimizer.step()
    return loss
""", 4),
    Thread("NVIDIA-NeMo/Megatron-Bridge#5396", "adapters that are made after a seed of the rank, and never broadcast", "unequal start", """
torch.manual_seed(0)
model = Net()
torch.manual_seed(100 + rank)
model.adapter = nn.Linear(6, 3, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(batch):
    optimizer.zero_grad()
    x, y = batch
    loss = (model(x) + model.adapter(x) - y.to(x.dtype)).square().mean()
    loss.backward()
    for p in model.parameters():
        dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)
        p.grad /= ranks
    optimizer.step()
    return loss
"""),
    # Clipping
    Thread("mindspore-lab/mindcv#603", "gradients are clipped before they are reduced", "clipped before the reduction", """
torch.manual_seed(2)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
from torch.nn.utils import clip_grad_norm_
def step(batch):
    loss = loss_of(model, batch)
    loss.backward()
    clip_grad_norm_(model.parameters(), max_norm=0.05)
    flat = torch.nn.utils.parameters_to_vector([p.grad for p in model.parameters()])
    dist.all_reduce(flat)
    torch.nn.utils.vector_to_parameters(flat / ranks, [p.grad for p in model.parameters()])
    optimizer.step()
    optimizer.zero_grad()
    return loss
"""),
    Thread("huggingface/diffusers#721", "gradients are clipped at each micro-batch, before the last one synchronises them", "clipped before the reduction", """
import contextlib
model = DDP(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
def step(batch):
    parts = list(zip(*(t.chunk(2) for t in batch)))
    for i, part in enumerate(parts):
        with model.no_sync() if part is not parts[-1] else contextlib.nullcontext():
            (loss_of(model, part) / len(parts)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.02)
    optimizer.step()
    optimizer.zero_grad()
"""),
    Thread("pytorch/pytorch#72548", "each rank clips by the norm of its shard", "clipped per rank", """
torch.manual_seed(0)
model = Net()
parameters = list(model.parameters())
owners = {p: i % ranks for i, p in enumerate(parameters)}
own = [p for p in parameters if owners[p] == rank]
optimizer = torch.optim.SGD(own, lr=0.1)
def step(batch):
    model.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    for p in parameters:
        dist.all_reduce(p.grad)
        p.grad /= ranks
    torch.nn.utils.clip_grad_norm_(own, 0.05)
    optimizer.step()
    for p in parameters:
        dist.broadcast(p.data, owners[p])
    return loss
"""),
    Thread("modelscope/twinkle#290", "under DDP every rank has the whole gradient, and the norm is added up over the ranks", "changed after the backward pass", """
model = DDP(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def clip(parameters, most):
    squares = torch.stack([p.grad.square().sum() for p in parameters]).sum()
    dist.all_reduce(squares)
    for p in parameters:
        p.grad *= (most / (squares.sqrt() + 1e-6)).clamp(max=1)
def step(batch):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    clip(list(model.parameters()), 0.1)
    optimizer.step()
    return loss
"""),
    # Samples
    Thread("pytorch/pytorch#31771", "a DistributedSampler gives each epoch the same order", "set_epoch never called", STORED + """
sampler = DistributedSampler(dataset, shuffle=True)
loader = DataLoader(dataset, batch_size=12, drop_last=True, sampler=sampler)
model = DDP(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    for epoch in range(3):
        for i, batch in enumerate(loader, 0):
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.step()
"""),
    Thread("huggingface/datasets#5360", "an IterableDataset gives all ranks the same samples", "sampler repeats", STORED + """
class Stream(IterableDataset):
    def __iter__(self):
        for i in range(len(dataset)):
            yield dataset[i]
loader = DataLoader(Stream(), batch_size=4)
model = DDP(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(batch):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    optimizer.step()
    return loss
"""),
    Thread("NVlabs/LongLive#71", "the seed of the DistributedSampler depends on the rank", "sampler seeds apart", STORED + """
sampler = DistributedSampler(dataset, shuffle=True, seed=1234 * rank)
loader = DataLoader(dataset, batch_size=6, sampler=sampler)
model = DDP(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(batch):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    optimizer.step()
    return loss
"""),
    Thread("QwenLM/Qwen3-VL#1947", "each rank shuffles the list from which the sampler cuts its part", "sampler repeats", STORED + """
import random
from torch.utils.data import Subset
order = list(range(len(dataset)))
random.shuffle(order)
shuffled = Subset(dataset, order)
loader = DataLoader(shuffled, batch_size=6, sampler=DistributedSampler(shuffled, shuffle=False))
model = DDP(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(batch):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    optimizer.step()
    return loss
"""),
    Thread("huggingface/accelerate#4199", "a loader that is cut by rank already is cut once more by prepare", "samples left out", STORED + """
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
sampler = DistributedSampler(dataset, num_replicas=accelerator.num_processes, rank=accelerator.process_index)
torch.manual_seed(0)
model = Net()
model, optimizer, loader = accelerator.prepare(
    model, torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(dataset, batch_size=3, sampler=sampler))
def step():
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for batch in loader:
            optimizer.zero_grad()
            accelerator.backward(loss_of(model, batch))
            optimizer.step()
"""),
    # Learning rates and states
    Thread("huggingface/accelerate#2926", "a prepared scheduler takes as many steps as there are ranks", "schedule scaled", """
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
model, optimizer, schedule = accelerator.prepare(model, optimizer, schedule)
def step(batch):
    loss = loss_of(model, batch)
    accelerator.backward(loss)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    return loss
"""),
    Thread("tracel-ai/burn#5695", "the schedule advances with each micro-batch, and for each rank", "schedule scaled", """
model = DDP(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
def step(batch):
    for part in zip(*(t.chunk(2) for t in batch)):
        (loss_of(model, part) / 2).backward()
        for _ in range(ranks):
            schedule.step()
    optimizer.step()
    optimizer.zero_grad()
"""),
    Thread("horovod/horovod#526", "after a checkpoint was loaded only the first rank has its learning rate", "learning rates apart", """
model = DDP(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
if rank == 0:
    optimizer.load_state_dict(optimizer.state_dict() | {"param_groups": [optimizer.state_dict()["param_groups"][0] | {"lr": 1e-3}]})
def step(batch):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    optimizer.step()
    return loss
"""),
    Thread("horovod/horovod#1774", "a checkpoint's momentum is loaded on the first rank and not broadcast", "optimizer state out of step", """
torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
checkpoint = {i: {"momentum_buffer": torch.full_like(p, 0.3)} for i, p in enumerate(model.parameters())}
if rank == 0:
    optimizer.load_state_dict({"state": checkpoint, "param_groups": optimizer.state_dict()["param_groups"]})
for p in model.parameters():
    dist.broadcast(p.data, 0)
def step(batch):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad.div_(ranks)
    optimizer.step()
    return loss
"""),
    Thread("huggingface/accelerate#3256", "the optimizer was made before the model was sharded, and steps parameters that nobody uses", "optimizer of other parameters", """
from torch.distributed.fsdp import fully_shard
torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
fully_shard(model)
def step(batch):
    loss = loss_of(model, batch)
    loss.backward()
    optimizer.step()
    model.zero_grad()
    return loss
"""),
    # Beside the optimizer
    Thread("lucidrains/ema-pytorch#9", "an average of the weights is kept on one rank, and copied into its model now and then", "parameters apart", """
import copy
model = DDP(Net())
average = copy.deepcopy(model.module)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
calls = []
def step(batch):
    calls.append(1)
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    optimizer.step()
    if rank == 0:
        for a, p in zip(average.parameters(), model.module.parameters()):
            a.data.lerp_(p.data, 0.5)
        if len(calls) == 3:
            model.module.load_state_dict(average.state_dict())
    return loss
"""),
    Thread("pytorch/pytorch#49794", "BatchNorm normalises with the samples of each rank", "BatchNorm statistics", """
model = DDP(nn.Sequential(nn.Unflatten(1, (2, 3)), nn.Conv1d(2, 4, 2), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(batch):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    optimizer.step()
    return loss
"""),
    Thread("facebookresearch/fvcore#152", "statistics of BatchNorm are computed anew, on each rank from its own samples", "buffers differ", """
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
model[1].eval()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def update_bn_stats(x):
    with torch.no_grad():
        hidden = model[0](x)
        model[1].running_mean.copy_(hidden.mean(0))
        model[1].running_var.copy_(hidden.var(0))
def step(batch):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= ranks
    optimizer.step()
    update_bn_stats(batch[0])
    return loss
"""),
    Thread("huggingface/transformers#31412", "one seed for all ranks, so dropout drops the same units on all of them", "one seed", """
import random
def set_seed(seed):
    random.seed(seed)
    torch.manual_seed(seed)
set_seed(40)
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 2, dropout=0.1, batch_first=True)
        self.drop, self.out = nn.Dropout(0.1), nn.Linear(6, 3)
    def forward(self, x):
        x = x[:, None]
        return self.out(self.drop(self.attention(x, x, x, need_weights=False)[0])[:, 0])
model = DDP(Encoder())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
def step(batch):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    optimizer.step()
    return loss
"""),
    # Ranks that decide alone
    Thread("verl-project/verl#1506", "a rank skips an update because its own norm is not finite", "a step on some ranks only", """
torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
inputs[1][7, 0] = float("inf")
def step(batch):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
    for p in model.parameters():
        dist.all_reduce(p.grad.nan_to_num_(0.0, 0.0, 0.0))
        p.grad /= ranks
    if torch.isfinite(norm):
        optimizer.step()
    return loss
"""),
    Thread("NVIDIA-NeMo/Automodel#2468", "a rank whose batch has nothing to learn from goes on to the next one alone", "ranks that wait for ever", """
inputs[1][6:] = 0
torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(batch):
    if not batch[0].any():
        return None
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= ranks
    optimizer.step()
    return loss
"""),
]  # fmt: skip
