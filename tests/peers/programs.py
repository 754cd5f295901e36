"""Programs put together at random from ``moves``, and what comes of one on ranks beside one process in float64.

A program is a line of text, which anyone can run again:

    DDP | 2 ranks | sgd | double | linear, gaps | window, clip by torch, step
"""

import functools
import random
import re
import traceback
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import torch.distributed as dist

import ringzero
from ringzero.ranks import RankError, RankTimeout, launch
from ringzero.strict import StrictError
from ringzero.zero import Host, Hybrid
from tests.peers.behaviours import ADAMW
from tests.peers.generated import MOMENTUM
from tests.peers.moves import KINDS, MOVES, NEEDS, NO_RIGHT, PARTS, Run
from tests.peers.trainers import OURS, SGD, TORCHS, OneProcess, zero

SUBJECTS = OURS | {
    "ZeRO-1, Host": zero(1, home=Host),
    "ZeRO-2, Host": zero(2, home=Host),
    "ZeRO-3, Host": zero(3, home=Host),
    "ZeRO-2, Hybrid": zero(2, travel=functools.partial(Hybrid, 2)),
    "ZeRO-3, Hybrid": zero(3, travel=functools.partial(Hybrid, 2)),
}
OPTIMIZERS = {"sgd": SGD, "momentum": MOMENTUM, "adamw": ADAMW}
LOW = {"bf16": torch.bfloat16, "fp16": torch.float16}
TIMES = {"plain": 3, "gradients": 3, "late": 3, "windows": 3, "errors": 1}  # how often beside other kinds
RIGHT, REFUSED, SILENT, HANG, CRASH, NO_PROGRAM = "right", "refused", "SILENT", "HANG", "CRASH", "no program"
FAILED = SILENT, HANG, CRASH
SOURCE = str(Path(ringzero.__file__).parent)


@dataclass(frozen=True)
class Program:
    trainer: str
    ranks: int
    optimizer: str
    precision: str
    parts: tuple[str, ...]
    moves: tuple[str, ...]

    def __str__(self):
        parts, does = ", ".join(self.parts), ", ".join(self.moves)
        return f"{self.trainer} | {self.ranks} ranks | {self.optimizer} | {self.precision} | {parts} | {does}"

    @property
    def low(self):
        """What a sharded model computes in, if that is less than it steps in."""
        return LOW.get(self.precision)

    @property
    def options(self):
        return {} if self.low is None else {"mixed_precision": self.low}

    @property
    def optimizer_and_options(self):
        return OPTIMIZERS[self.optimizer]

    def stepped_in(self, is_oracle):
        return torch.float64 if is_oracle or self.precision == "double" else torch.float32

    def typed(self, module, is_oracle):
        """``module`` in this program's precision, or in float64 but with the same numbers."""
        return convert(module, torch.float64 if self.precision == "double" or is_oracle else None)


def convert(module, dtype=None):
    """On the device where tensors are made, floating-point ones in ``dtype``. As ``module.to(...)``, which would change
    how tensors lie in memory: all numbers of what one views go along.
    """
    moved = {}
    tensors = [*module.parameters(), *module.buffers()]
    for tensor in dict.fromkeys(tensors):
        base = tensor.detach()._base if tensor.detach()._base is not None else tensor.detach()
        storage, like = base.untyped_storage(), dtype if tensor.is_floating_point() else None
        if storage.data_ptr() not in moved:
            flat = torch.tensor([], dtype=tensor.dtype, device=tensor.device).set_(storage)
            moved[storage.data_ptr()] = flat.to(torch.get_default_device(), like or tensor.dtype)
        with torch.no_grad():
            of = moved[storage.data_ptr()]
            tensor.data = of.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    return module


def parsed(text):
    trainer, ranks, optimizer, precision, parts, does = (part.strip() for part in text.split(" | "))
    return Program(trainer, int(ranks.split()[0]), optimizer, precision, listed(parts), listed(does))


def listed(text):
    return tuple(each for each in text.split(", ") if each)


def drawn(seed, number):
    """The ``number``-th program of a ``seed``: the first of some that one process can do."""
    pick = random.Random(f"{seed}-{number}")
    while isinstance(alone(program := any_program(pick)), Exception):
        pass
    return program


def any_program(pick):
    trainer = pick.choice([*SUBJECTS])
    ranks = pick.choice((2, 4)) if "Hybrid" in trainer else pick.choice((1, 2, 2, 2, 3, 3, 4, 5))
    precision = "double"
    if pick.random() < 0.4:
        precision = pick.choice(("float", "bf16", "bf16", "fp16") if "ZeRO" in trainer else ("float",))
    optimizer = pick.choice(("sgd", "momentum") if precision in LOW else [*OPTIMIZERS])
    parts = [pick.choice([*PARTS]) for _ in range(pick.choice((1, 2, 2, 3)))]
    if pick.random() < 0.3:
        parts[-1] = f"frozen {parts[-1]}"
    kinds = [kind for kind in KINDS for _ in range(TIMES.get(kind, 2))]
    does = [pick.choice(KINDS[pick.choice(kinds)]) for _ in range(pick.choice((1, 2, 3, 3, 4)))]
    does = [each for each in does if can(trainer, each, precision)]
    return Program(trainer, ranks, optimizer, precision, tuple(parts), (*does, "step"))


def can(trainer, does, precision):
    if "join" in NEEDS[does] and not trainer.startswith(("DDP", "ZeRO-1", "ZeRO-2")):
        return False
    return not (precision in LOW and does == "to float")


# ---- one process


@functools.lru_cache(500)
def alone(program):
    """``(state, noted, moved)`` of one process, or the exception that says that this is no program."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return outcome_of(program, OneProcess, None)
        except Exception as error:
            return error


def outcome_of(program, make, rank):
    run = Run(program, make, rank)
    start = {name: whole(p) for name, p in run.module.named_parameters()} if rank is None else {}
    for does in program.moves:
        MOVES[does](run)
    state = run.trainer.state() | dict(run.module.named_buffers())
    state = {name: whole(value) for name, value in state.items()}
    run.note("output", run.output())  # at last: FSDP2 leaves parameters whole
    still = [name for name, value in start.items() if name in state and torch.equal(value, state[name])]
    return state, run.noted, run.moved, still


def whole(value):
    value = value.full_tensor() if hasattr(value, "full_tensor") else value
    return value.detach().cpu().double().clone()


# ---- on ranks


def on_ranks(programs, folder):
    """Each program in turn; what came of it is in ``folder``, so that it is known even if a later one ends all."""
    warnings.simplefilter("ignore")
    rank, together = dist.get_rank(), dist.new_group()
    for number, program in programs:
        torch.save(on_this_rank(program, rank), Path(folder) / f"part-{number}-{rank}")
        (Path(folder) / f"part-{number}-{rank}").rename(Path(folder) / f"{number}-{rank}")
        dist.barrier(group=together)  # whoever is refused alone does not go on


def on_this_rank(program, rank):
    make = (SUBJECTS | TORCHS)[program.trainer]
    try:
        return outcome_of(program, make, rank)
    except Exception as error:
        return complaint(error)


@dataclass(frozen=True)
class Complaint:
    sentence: str
    is_ours: bool


def complaint(error):
    """What an exception says, and whether we said it."""
    cause = error
    frames = traceback.extract_tb(cause.__traceback__)
    by_the_rules = isinstance(error, StrictError)  # of NCCL, which would not have said it
    quoted = "Error(s) in loading state_dict" in str(error) and "ZeroStage3 has it whole only" in str(error)
    is_ours = not by_the_rules and (quoted or (bool(frames) and frames[-1].filename.startswith(SOURCE)))
    return Complaint(f"{type(error).__name__}: {' '.join(str(error).split())}", is_ours)


def judge(program, ranks):
    """``(outcome, why)`` of what each rank had: a complaint, or an outcome; None where it had nothing."""
    expected = alone(program)
    complaints = [each for each in ranks if isinstance(each, Complaint)]
    if any(each is None for each in ranks):
        says = complaints[0].sentence if complaints else ""
        return HANG, f"one rank says: {says}" if says else ""
    if complaints:
        if len({kind_of(each.sentence) for each in complaints}) > 1 or len(complaints) < len(ranks):
            said = {
                rank: each.sentence if isinstance(each, Complaint) else "goes on" for rank, each in enumerate(ranks)
            }
            return CRASH, f"ranks differ: {said}"
        if isinstance(expected, Exception):
            return NO_PROGRAM, complaint(expected).sentence
        return (REFUSED if complaints[0].is_ours else CRASH), complaints[0].sentence
    if isinstance(expected, Exception):
        return NO_PROGRAM, f"one process says {complaint(expected).sentence}"
    if apart := differing_ranks(ranks):
        return SILENT, f"ranks differ in {apart}"
    if NO_RIGHT & {*program.moves}:
        return RIGHT, ""
    return (SILENT, wrong) if (wrong := differences(program, expected, ranks[0])) else (RIGHT, "")


def kind_of(sentence):
    """A sentence without numbers and names, which differ between programs."""
    sentence = re.sub(r"\b(parts|head|adapter|tally)\b[\w.]*(, (parts|head|adapter|tally)\b[\w.]*)*", "NAMES", sentence)
    return re.sub(r"\[[^]]*\]", "[...]", re.sub(r"\d+(\.\d+)?(e[-+]?\d+)?", "N", sentence))[:240]


def differing_ranks(ranks):
    first = ranks[0]
    for other in ranks[1:]:
        for mine, theirs in zip(first[:2], other[:2], strict=True):
            if mine.keys() != theirs.keys():
                return f"what there is: {sorted(mine.keys() ^ theirs.keys())}"
            for name, value in mine.items():
                if value.shape != theirs[name].shape or not torch.equal(
                    value.nan_to_num(7.5), theirs[name].nan_to_num(7.5)
                ):
                    far = (value - theirs[name]).abs().max().item() if value.shape == theirs[name].shape else "shapes"
                    return f"{name} by {far}"
    return None


def differences(program, expected, got):
    (state, noted, moved, still), (state_here, noted_here, *_) = expected, got
    if state.keys() != state_here.keys():
        return f"state has {sorted(state.keys() ^ state_here.keys())} in one of the two only"
    if noted.keys() != noted_here.keys():
        return f"noted {[*noted]}, here {[*noted_here]}"
    for name, value in state.items():
        near, far = bound(program, moved, value), None
        if name in still or not value.is_floating_point():
            near = 0.0
        if name == "tally" and program.low is not None:
            near = 4 * torch.finfo(program.low).eps * value.abs().max().item() + 1e-6
        if value.shape != state_here[name].shape:
            return f"{name} has the shape {tuple(state_here[name].shape)} instead of {tuple(value.shape)}"
        if value.numel() and not (far := (value - state_here[name]).abs().max().item()) <= near:
            return f"{name} is off by {far:.3g}, more than {near:.3g}; it is {value.abs().max():.3g}"
    for name, value in noted.items():
        if value.shape != noted_here[name].shape:
            return f"noted {name} has the shape {tuple(noted_here[name].shape)} instead of {tuple(value.shape)}"
        if not torch.allclose(
            value,
            noted_here[name],
            rtol=(near := note_bound(program)),
            atol=near * (1 + value.abs().max().item() if value.numel() else 0),
            equal_nan=True,
        ):
            return (
                f"noted {name} is {noted_here[name].flatten()[:3].tolist()} instead of {value.flatten()[:3].tolist()}"
            )
    return None


def bound(program, moved, value):
    """How far a parameter may be off.

    In float64 and float32 sums are in another order. In fewer digits each gradient is rounded, and so are the weights
    that it is taken at: it may be off by some roundings, and a parameter by as many of the way that it went.
    """
    largest = 1 + (value.abs().max().item() if value.numel() else 0.0)
    if program.low is not None:
        written = largest if any("weights scaled" in does for does in program.moves) else 0.0  # in fewer digits, too
        return torch.finfo(program.low).eps * (32 * moved + written) + 1e-6
    return {"double": 1e-9, "float": 1e-3 if program.optimizer == "adamw" else 1e-4}[program.precision] * largest


def note_bound(program):
    if program.low is not None:
        return 64 * torch.finfo(program.low).eps
    return {"double": 1e-8, "float": 2e-3}[program.precision]


# ---- many


def run_all(programs, folder, timeout=60.0, device="cpu", tell=lambda *_: None):
    """``(outcome, why)`` of each of the ``programs``, many of which share a call of ``launch``."""
    outcomes, left = {}, {}
    for place, program in enumerate(programs):
        left.setdefault(program.ranks, []).append(place)
    for ranks, places in left.items():
        while places:
            done = run_some({place: programs[place] for place in places[:25]}, ranks, folder, timeout, device)
            clean = True  # nothing before has left anything behind
            for place, outcome in done.items():
                again = outcome[0] in FAILED and (not clean or outcome[0] == HANG) and len(places) > 1
                alone_ = run_some({place: programs[place]}, ranks, folder, 20.0, device) if again else done
                outcomes[place], clean = alone_[place], clean and outcome[0] == RIGHT
                tell(programs[place], *outcomes[place])
            places = [place for place in places if place not in done]
    return [outcomes[place] for place in range(len(programs))]


def run_some(these, ranks, folder, timeout, device):
    """What came of the programs up to the one that ended the call, if one did."""
    for file in Path(folder).iterdir():
        file.unlink()
    ended = None
    try:
        launch(on_ranks, [*these.items()], str(folder), world_size=ranks, timeout=timeout, device=device)
    except RankTimeout as error:
        ended = HANG, str(error)
    except RankError as error:
        ended = CRASH, str(error)
    done = {}
    for place, program in these.items():
        files = [Path(folder) / f"{place}-{rank}" for rank in range(ranks)]
        had = [torch.load(file, weights_only=False) if file.exists() else None for file in files]
        if None in [h if h is None else 1 for h in had]:
            if ended is None:
                raise RuntimeError(f"nothing came of {program}")
            said = [each.sentence for each in had if isinstance(each, Complaint)]
            done[place] = ended[0], (f"a rank was refused alone: {said[0]}; " if said else "") + last_line(ended[1])
            if isinstance(alone(program), Exception):
                done[place] = NO_PROGRAM, str(alone(program))
            break
        done[place] = judge(program, had)
    return done


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if "Error" in line or "waits" in line or "signal" in line]
    return (said or lines or [""])[-1][:300]


def shrunk(program, fails):
    """The shortest program found that still ``fails``."""
    tried = set()

    def smaller(program):
        for i in range(len(program.moves)):
            yield replace(program, moves=program.moves[:i] + program.moves[i + 1 :])
        for i in range(len(program.parts)):
            if len(program.parts) > 1:
                yield replace(program, parts=program.parts[:i] + program.parts[i + 1 :])
        for i, part in enumerate(program.parts):
            for simpler in (part.removeprefix("frozen "), "linear"):
                if simpler != part:
                    yield replace(program, parts=(*program.parts[:i], simpler, *program.parts[i + 1 :]))
        for precision in ("double", "float"):
            yield replace(program, precision=precision)
        yield replace(program, optimizer="sgd")
        for ranks in range(1 if "Hybrid" not in program.trainer else 2, program.ranks):
            if "Hybrid" not in program.trainer or ranks == 2:
                yield replace(program, ranks=ranks)

    again = True
    while again:
        again = False
        for other in smaller(program):
            if other.moves and other not in tried:
                tried.add(other)
                if fails(other):
                    program, again = other, True
                    break
    return program
