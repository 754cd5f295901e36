"""A BERT-like encoder trained data parallel: which part of Python's library does a sentence of its manual describe?

    python bert.py                                                   one process
    torchrun --standalone --nproc-per-node 2 bert.py                 one node, two GPUs; without GPUs two processes
    torchrun --nnodes 2 --node-rank 0 --nproc-per-node 4 --master-addr NODE0 --master-port 29500 bert.py
    torchrun --nnodes 2 --node-rank 1 --nproc-per-node 4 --master-addr NODE0 --master-port 29500 bert.py
                                                                     two nodes, four GPUs each; under Slurm: bert.sbatch

With ``--checkpoint FILE`` the same line, given again, goes on where the last one stopped: after a crash, a kill, the
end of a Slurm job, on as many ranks or on others. What a step draws at random, the order of the samples and the
dropout, follows from the seed and the step's number, so the losses are those of a run that was never interrupted.
Devlin et al., "BERT", NAACL 2019. Needs tqdm besides ringzero; downloads nothing.
"""

import os
import re
import shlex
import sysconfig
import zlib
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import click
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention
from torch.utils.data import DistributedSampler
from tqdm import tqdm

from ringzero.data_parallel import DistributedDataParallel

PARTS = {
    "concurrency": "asyncio concurrent multiprocessing queue sched selectors subprocess threading",
    "files": "_pyio fileinput glob gzip os pathlib posixpath shutil tarfile tempfile zipfile",
    "internet": "ftplib http imaplib ipaddress poplib smtplib socket socketserver ssl urllib wsgiref xmlrpc",
    "language": "_collections_abc ast collections contextlib copy enum functools importlib operator types typing",
    "mail": "email mailbox",
    "numbers": "_pydecimal calendar datetime fractions numbers random statistics",
    "testing": "bdb doctest inspect logging pdb pydoc traceback unittest",
}
# At the start of a file or of a block, whatever comments stand before. To parse the files would take ten times as long.
DOCSTRING = re.compile(r'(?:^|:\n)(?:#.*\n|\s)*r?"""([\s\S]*?)"""')
PAD, CLS, UNKNOWN = 0, 1, 2
WARM_UP = 50  # steps in which the learning rate grows
DECIDES = ("seed", "batch", "lr", "length", "vocabulary", "hidden", "heads", "layers", "dropout")  # what is learned


def documentation():
    """``[(part, docstring)]`` of the library of the Python that runs this."""
    library = Path(sysconfig.get_path("stdlib"))
    for part, modules in enumerate(PARTS.values()):
        for module in modules.split():
            for path in sorted([*library.glob(f"{module}.py"), *library.glob(f"{module}/**/*.py")]):
                for text in DOCSTRING.findall(path.read_text(encoding="utf-8")):
                    yield part, text


def samples(length, vocabulary):
    """Sentences as numbers: ``(tokens, parts)`` to train on and to test on. Tokens are (samples, length), int64.

    The vocabulary is the commonest words. No docstring has sentences in both sets.
    """
    sets, seen = {"train": [], "test": []}, set()
    for part, text in documentation():
        tested = zlib.crc32(text.encode()) % 6 == 0
        for sentence in re.split(r"\n\s*\n|[.:](?=\s)", text):
            words = tuple(re.findall(r"[a-z]+", sentence.lower()))[: length - 1]
            if len(words) >= 4 and words not in seen:
                seen.add(words)
                sets["test" if tested else "train"].append((words, part))
    counts = Counter(word for words, _ in sets["train"] for word in words)
    number = {word: i for i, (word, _) in enumerate(counts.most_common(vocabulary - 3), UNKNOWN + 1)}
    for name, pairs in sets.items():
        tokens = torch.full((len(pairs), length), PAD)
        for row, (words, _) in zip(tokens, pairs, strict=True):
            row[: len(words) + 1] = torch.tensor([CLS, *(number.get(word, UNKNOWN) for word in words)])
        sets[name] = (tokens, torch.tensor([part for _, part in pairs]))
    return sets["train"], sets["test"]


class Dropout(nn.Module):
    """A mask for the whole batch of all ranks, of which each takes its samples': N ranks drop what one would."""

    def __init__(self, probability):
        super().__init__()
        self.probability = probability

    def forward(self, x):  # (samples of this rank, ...)
        if not self.training or not self.probability:
            return x
        rank, n = dist.get_rank(), dist.get_world_size()
        kept = torch.rand(n * len(x), *x.shape[1:], device=x.device)[rank::n] >= self.probability
        return x * kept / (1 - self.probability)


class Block(nn.Module):
    """Self-attention and an MLP, each on normalised input and added to what came in."""

    def __init__(self, hidden, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, Dropout(dropout)
        self.before_attention, self.before_mlp = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.query_key_value, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.mlp = nn.Sequential(nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Linear(4 * hidden, hidden))

    def forward(self, x, is_word):  # (batch, length, hidden), (batch, length)
        query, key, value = (
            self.query_key_value(self.before_attention(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        )
        seen = scaled_dot_product_attention(query, key, value, attn_mask=is_word[:, None, None, :])
        x = x + self.dropout(self.out(seen.transpose(1, 2).flatten(2)))
        return x + self.dropout(self.mlp(self.before_mlp(x)))


class Bert(nn.Module):
    """Token numbers (batch, length) to scores (batch, classes), read off the first token. Nobody looks at padding."""

    def __init__(self, vocabulary, length, classes, hidden, heads, layers, dropout):
        super().__init__()
        self.words, self.positions = nn.Embedding(vocabulary, hidden), nn.Embedding(length, hidden)
        for embedding in (self.words, self.positions):
            nn.init.normal_(embedding.weight, std=0.1)
        self.dropout = Dropout(dropout)
        self.blocks = nn.ModuleList(Block(hidden, heads, dropout) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, classes)

    def forward(self, tokens):
        x = self.dropout(self.words(tokens) + self.positions.weight[: tokens.shape[1]])
        for block in self.blocks:
            x = block(x, tokens != PAD)
        return self.head(self.norm(x[:, 0]))


def save(path, state):
    """Write so that ``path`` is always whole: the old checkpoint or the new one, even if the power fails."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    with open(unfinished, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    os.fsync(directory)  # the new name too
    os.close(directory)


def load(path, run):
    """What rank 0 finds at ``path``, on every rank: only its node needs the file. None if there is none.

    Raises ValueError, on every rank, for a file that is damaged or comes from another ``run``.
    """
    state, wrong = None, None
    if dist.get_rank() == 0:
        try:
            state = _read(path, run)
        except ValueError as error:
            wrong = str(error)
    said = [state, wrong]
    dist.broadcast_object_list(said, src=0)
    if said[1]:
        raise ValueError(said[1])
    return said[0]


def _read(path, run):
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"no checkpoint can be written to {path.parent}; make that directory, or name another")
    if not path.exists():
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        theirs = state["run"]
    except Exception as error:
        why = type(error).__name__
        raise ValueError(f"checkpoint {path} is damaged, or none ({why}); delete it to start anew") from error
    if different := [f"{name} {theirs.get(name)}, now {run[name]}" for name in run if theirs.get(name) != run[name]]:
        raise ValueError(f"checkpoint {path} is of another run ({'; '.join(different)}); name another file")
    return state


@torch.no_grad()
def accuracy(model, tokens, parts):
    """The share of all samples that the model gets right; each rank tries its own, and none twice."""
    rank, n = dist.get_rank(), dist.get_world_size()
    model.eval()
    right = torch.zeros(1, dtype=torch.int64)
    for theirs, its in zip(tokens[rank::n].split(256), parts[rank::n].split(256), strict=True):
        right += (model(theirs).argmax(1) == its).sum()
    model.train()
    dist.all_reduce(right)
    return right.item() / len(parts)


def batches(samples, options, step):
    """From ``step`` on, for each step the numbers of this rank's samples. N ranks together take what one would."""
    rank, n = dist.get_rank(), dist.get_world_size()
    steps = samples // options.batch  # of an epoch
    sampler = DistributedSampler(range(samples), n, rank, seed=options.seed, drop_last=True)
    while True:
        sampler.set_epoch(step // steps)
        with torch.device("cpu"):
            order = torch.tensor(list(sampler))
        for mine in order.split(options.batch // n)[step % steps : steps]:
            yield mine
            step += 1


@contextmanager
def traced(folder, steps):
    """Inside, torch.profiler keeps the last three of ``steps``; what is yielded must be called at the end of each.

    Leaves ``rank0.json.gz`` and so on in ``folder``, for ``ringzero timeline``. Does nothing where it is None.
    """
    if not folder:
        yield lambda: None
        return
    if steps < 5:
        raise ValueError(f"--traces keeps three of at least 5 steps, and there are {steps} to do; give more --steps")
    Path(folder).mkdir(parents=True, exist_ok=True)
    schedule = torch.profiler.schedule(wait=steps - 4, warmup=1, active=3, repeat=1)
    with torch.profiler.profile(schedule=schedule) as profile:
        yield profile.step
    profile.export_chrome_trace(f"{folder}/rank{dist.get_rank()}.json.gz")


def train(options, wrap=DistributedDataParallel):
    """On each rank: ``{"losses": of every step, "accuracies": {step: share right}, "baseline": share, "began": step}``.

    Raises ValueError for options that do not fit each other, the number of ranks, the data or the checkpoint.
    """
    rank, n, device = dist.get_rank(), dist.get_world_size(), torch.get_default_device()
    say = tqdm.write if rank == 0 else lambda line: None
    if options.batch % n:
        raise ValueError(f"--batch {options.batch} does not divide by {n} ranks; give a multiple of {n}")
    if options.hidden % options.heads:
        raise ValueError(f"--hidden {options.hidden} does not divide by --heads {options.heads}")
    with torch.device("cpu"):
        read = [samples(options.length, options.vocabulary) if rank == 0 else None]
        dist.broadcast_object_list(read, src=0)  # the nodes' libraries may differ
    (tokens, parts), test = [[tensor.to(device) for tensor in pair] for pair in read[0]]
    if len(tokens) < options.batch:
        raise ValueError(f"--batch {options.batch} is more than the {len(tokens)} sentences there are")

    torch.manual_seed(options.seed + rank)  # every rank another model, until all get rank 0's
    size = (options.hidden, options.heads, options.layers, options.dropout)
    module = Bert(options.vocabulary, options.length, len(PARTS), *size)
    model = wrap(module)
    optimizer = torch.optim.AdamW(module.parameters(), lr=options.lr)
    bfloat16 = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    baseline = test[1].bincount().max().item() / len(test[1])
    say(f"{n} ranks, {sum(p.numel() for p in module.parameters()):,} parameters, {len(tokens)} sentences")
    say(f"always the commonest part: accuracy {baseline:.1%} on {len(test[1])} others")

    run = {name: getattr(options, name) for name in DECIDES} | {"data": zlib.crc32(read[0][0][0].numpy().tobytes())}
    losses, accuracies, path = [], {}, options.checkpoint and Path(options.checkpoint)
    if path and (state := load(path, run)):
        module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        losses, accuracies = state["losses"], state["accuracies"]
        say(f"going on from step {len(losses)} of {path}")

    began, fresh = len(losses), []  # fresh: this rank's losses since all ranks last put theirs together
    bar = tqdm(range(began, options.steps), initial=began, total=options.steps, disable=None if rank == 0 else True)
    with traced(options.traces, options.steps - began) as end_of_step:
        for step, mine in zip(bar, batches(len(tokens), options, began), strict=False):
            torch.manual_seed(options.seed + step)  # on all ranks alike, see Dropout
            mine = mine.to(device)
            with torch.autocast(device.type, torch.bfloat16, enabled=bfloat16):
                loss = cross_entropy(model(tokens[mine]), parts[mine])
            loss.backward()
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            for group in optimizer.param_groups:
                group["lr"] = options.lr * min(1.0, (step + 1) / WARM_UP)
            optimizer.step()
            optimizer.zero_grad()
            fresh.append(loss.detach())
            end_of_step()
            if (step + 1) % options.every == 0 or step + 1 == options.steps:
                means = torch.stack(fresh) / n
                dist.all_reduce(means)
                losses, fresh = losses + means.tolist(), []
                accuracies[step + 1] = accuracy(module, *test)
                say(f"step {step + 1}: loss {means.mean():.4f}, accuracy {accuracies[step + 1]:.1%}")
                if path and rank == 0:
                    state = {"model": module.state_dict(), "optimizer": optimizer.state_dict(), "run": run}
                    save(path, state | {"losses": losses, "accuracies": accuracies})
    return {"losses": losses, "accuracies": accuracies, "baseline": baseline, "began": began}


@contextmanager
def process_group():
    """torchrun's ranks, or this process alone; with NCCL and a GPU for each rank where there are enough."""
    alone = {} if "RANK" in os.environ else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    local_rank, ranks_here = (int(os.environ.get(name, i)) for i, name in enumerate(("LOCAL_RANK", "LOCAL_WORLD_SIZE")))
    gpus = torch.cuda.device_count() >= ranks_here
    if gpus:
        torch.cuda.set_device(local_rank)
        torch.set_default_device(torch.device("cuda", local_rank))
    dist.init_process_group("nccl" if gpus else "gloo", **alone)
    try:
        yield
    finally:
        dist.destroy_process_group()


def number(name, default, text, **limits):
    kind = click.IntRange if isinstance(default, int) else click.FloatRange
    return click.option(f"--{name}", default=default, show_default=True, help=text, type=kind(**limits))


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@number("steps", 300, "In all, those before a checkpoint included.", min=1)
@number("batch", 64, "Sentences a step, on all ranks together.", min=1)
@number("lr", 1e-3, "Learning rate.", min=0, min_open=True)
@number("every", 50, "Steps between evaluations, and between checkpoints.", min=1)
@number("seed", 0, "Of the first model, the order of the samples and the dropout.", min=0)
@number("length", 32, "Tokens of a sentence, [CLS] included.", min=5)
@number("vocabulary", 4000, "Tokens, [PAD], [CLS] and [UNK] included.", min=10)
@number("hidden", 128, "Size of a token.", min=1)
@number("heads", 4, "Of attention.", min=1)
@number("layers", 2, "Encoder blocks.", min=1)
@number("dropout", 0.1, "Share of activations dropped.", min=0, max=1, max_open=True)
@click.option("--checkpoint", type=click.Path(dir_okay=False), help="Go on from this file, and save to it.")
@click.option("--traces", type=click.Path(file_okay=False), help="Profile the last three steps into this folder.")
def main(**options):
    """Train a small BERT on the documentation of Python's library; start it with python or torchrun."""
    with process_group():
        try:
            train(SimpleNamespace(**options))
        except ValueError as error:
            raise click.ClickException(str(error)) from None


def options(line=""):
    """What ``train`` takes, from the words of a command line: ``options("--steps 20 --layers 1")``."""
    return SimpleNamespace(**main.make_context("bert.py", shlex.split(line)).params)


if __name__ == "__main__":
    main()
