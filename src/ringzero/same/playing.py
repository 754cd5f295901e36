"""One run of the program on one rank: its calls, and what was noted of them as plain data."""

import math
import traceback

import torch
import torch.distributed as dist

from ringzero.same import program
from ringzero.same.program import Feed, ProgramError
from ringzero.same.watching import Enough, Watch

SEED = 1_000  # of rank 0 and of one process; rank r has the r-th after it
COPIES = 6  # times its parameters is what a rank needs of memory, with gradients, Adam's averages and our notes


def play(path: str, name: str, samples: str | None, calls: int, dtype: str | None, given: list | None) -> dict:
    """On a rank: run the file, call its step ``calls`` times, and say what happened, or why it is ``refused``.

    ``given``: the batches that the step, or the program's loaders, get; None: the program's own. ``dtype``: "float64"
    to compute everything in that, None as the program is written.
    """
    try:
        return _play(path, name, samples, calls, dtype, given)
    except ProgramError as why:
        return {"refused": str(why)}


def _play(path, name, samples, calls, dtype, given):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.use_deterministic_algorithms(True, warn_only=True)
    wide = getattr(torch, dtype) if dtype else None
    if wide:
        torch.set_default_dtype(wide)
    feed, dropped = Feed(given), []  # type: Feed, list
    failed = ""
    watch = Watch(4 * calls, feed, lambda nbytes: _refuse_if_too_large(nbytes, ranks))
    with program.changed(feed, dropped), watch.watching():
        try:
            module = program.load(path, SEED + rank)
            step = program.step_of(module, name)
            own = _own_batches(step, module, samples, feed)
            one_step = own is not None  # whether a call is one step, and nothing else
            for _ in range(calls):
                watch.drawn.forget()
                if one_step:
                    watch.drawn.note()
                arguments = () if own is None else (program.converted(next(own), wide),)
                loss = step(*arguments)
                if callable(loss) and not watch.events and own is None:  # it made the step
                    step = loss
                    own = _own_batches(step, module, samples, feed)
                    one_step = own is not None
                    continue
                if one_step:
                    watch.drawn.note()
                watch.after_call(loss)
                if own is None and sum(event["kind"] == "step" for event in watch.events) >= calls:
                    break  # it trains by itself, and again would be another model
                one_step = one_step or sum(event["kind"] == "step" for event in watch.events) <= 1
        except (Enough, StopIteration):
            pass
        except Exception as error:
            if isinstance(error, ProgramError):
                raise
            if isinstance(error, (RuntimeError, AssertionError)) and _asks_for_gpu(error):
                raise ProgramError(
                    f"the program needs a GPU ({str(error).splitlines()[0]}), and there is none. "
                    'Choose the device by torch.cuda.is_available(), or give the step "cpu" to compare'
                ) from error
            if not watch.events:
                raise
            line = max(
                (f.lineno or 0 for f in traceback.extract_tb(error.__traceback__) if f.filename == path), default=0
            )
            said = str(error).strip().splitlines() or [""]
            failed = f"{type(error).__name__} in line {line}: {said[0]}"
    return {
        "events": watch.events, "start": watch.start, "facts": watch.facts(), "taken": feed.taken,
        "passes": feed.passes, "loaded": feed.loaded, "inputs": watch.inputs, "drew": watch.drawn.name,
        "dropped": [str(state) for state in dropped[:1]], "failed": failed,
    }  # fmt: skip


def _asks_for_gpu(error):
    return "cuda" in str(error).lower() and not torch.cuda.is_available()


def _own_batches(step, module, samples, feed):
    """The batches for a step that takes one; None for one that takes them itself."""
    import inspect

    try:
        parameters = inspect.signature(step).parameters.values()
    except (TypeError, ValueError):
        return None
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    needed = [p for p in positional if p.default is p.empty and p.kind != p.VAR_POSITIONAL]
    if len(needed) > 1:
        names = ", ".join(p.name for p in needed)
        raise ProgramError(f"the step takes {len(needed)} arguments ({names}); it may take one, the batch, or none")
    if not needed:
        return None
    return program.batches(program.samples_of(module, samples), feed, dist.get_rank(), dist.get_world_size())


def _refuse_if_too_large(nbytes, ranks):
    import psutil

    free, needed = psutil.virtual_memory().available, nbytes * COPIES * ranks
    if needed > free + nbytes * ranks:
        most = math.floor(free / max(nbytes * COPIES, 1))
        raise ProgramError(
            f"the model has {nbytes / 1e9:.2f} GB of parameters; to train on {ranks} ranks takes about "
            f"{needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free. Compare a smaller one (fewer layers), "
            f"or {max(most, 1)} ranks"
        )
