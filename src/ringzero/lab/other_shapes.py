"""The same checks with other numbers: a wrong solution must fail there too, and a right one must not.

A check that only its own numbers make strict would let the same mistake pass with others. After ``use(1)`` every run
that a check declares has other sizes, widths, numbers of layers, seeds and times than the lab says; ``use(2)`` and so
on give still others, ``use(0)`` those of the lab. What makes a run what it is stays: how many ranks there are and
whether N divides, what is empty, which widths are equal, what just fits. Claims read these numbers from the run.

Arguments of plain functions change by ``_number``, unless ``PLAIN`` has a rule for the function; options of harnesses
change by name, by the rules in ``BY_NAME``.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from ringzero.lab.checks import Check
from ringzero.lab.harness import host_tier, sharded, window
from ringzero.lab.runs import Run

SMALL = 6  # numbers below are ranks, stages, bytes of a type, or special: they stay
MOST_RANKS = 1_000_000  # what is more is bytes
own = Check.run


def use(shape: int) -> None:
    """From now on runs are declared with the numbers of this ``shape``; 0 are the lab's own."""
    Check.run = functools.partialmethod(other, shape) if shape else own  # type: ignore[method-assign, assignment]


def other(
    check: Check, shape: int, /, *args: Any, numel: int | None = None, ranks: int | None = None, **options: Any
) -> Run:
    """``Check.run`` with other numbers."""
    harness = getattr(check._harness, "func", check._harness)
    n = ranks or check._ranks or check.world_size
    args, options = changed(check.name, harness, args, options, n, shape)
    more = numel if "sizes" in options else _more(numel, n, shape)  # sizes are those of the tensor's pieces
    run: Run = own(check, *args, numel=more, ranks=ranks, **options)
    run.case = dataclasses.replace(run.case, seed=run.case.seed + shape)
    return run


def changed(name: str, harness: Callable | None, args: tuple, options: dict, ranks: int, shape: int) -> tuple:
    """Other ``(args, options)`` for a run of the function ``name`` on so many ``ranks``, with or without a harness."""
    if harness is None or harness.__name__ in ("plainly", "on_paper"):
        others = {key: _number(value, shape) for key, value in options.items() if key not in ("root", "sizes")}
        if "sizes" in options:
            others["sizes"] = _rotated(options["sizes"], shape)
        return PLAIN.get(name, _each)(args, shape), options | others
    where = f"{harness.__module__.rpartition('.')[2]}.{harness.__name__}"
    if where in POSITIONAL:
        return POSITIONAL[where](args, shape), options
    options = DEFAULTS.get(where, {}) | options
    others = {key: BY_NAME[key](value, ranks, shape) for key, value in options.items() if key in BY_NAME}
    if where == "quantised.there_and_back":  # as many blocks as before, and a last one of the same length
        blocks, rest = divmod(options["size"], options["block"])
        others["size"] = blocks * others["block"] + rest
    if "rows" in options:  # of a matrix: all equally long
        others["size"] -= others["size"] % options["rows"]
    if options.get("kind") == "downhill":  # how near the end is depends on the size
        del others["size"]
    return args, options | others


# ---- rules for one number, and for plain values


def _number(value: Any, shape: int) -> Any:
    """Another number of the same kind: a few more, or an eighth more; also in lists and tuples."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_number(each, shape) for each in value)
    if isinstance(value, float):
        return value * (1 + shape / 8)
    if isinstance(value, int) and not isinstance(value, bool) and value >= SMALL:
        return value + shape
    return value


def _each(args, shape):
    return tuple(_number(value, shape) for value in args)


def _same(args, shape):
    return args


def _scaled(args, shape):
    """So many times the parameters and the memory: what just fits still does. The ranks stay."""
    params, stage, last = args
    return params * (1 + shape), stage, last * (1 + shape) if last > MOST_RANKS else last


def _multiples(args, shape):
    """Whole numbers so many times as large, times an eighth longer: what fills a bucket still does."""

    def multiple(value):
        if isinstance(value, (list, tuple)):
            return [multiple(each) for each in value]
        return value * (1 + shape) if isinstance(value, int) else _number(value, shape)

    return tuple(map(multiple, args))


def _larger_layers(args, shape):
    """Layers, caps and latency so many times as large: the cap that ends first stays first, and equal ends equal."""
    backwards, sizes, caps, alpha, beta = args
    times = 2**shape
    return *([times * value for value in some] for some in (backwards, sizes, caps)), times * alpha, beta


def _share(args, shape):
    """More stages, and another share; one that leaves exactly so much idle stays."""
    stages, share, pieces = args
    return _number(stages, shape), share if (1024 * share).is_integer() else _number(share, shape), pieces


def _other_powers(args, shape):
    """Numbers of ranks; one at a large power of two, or beside one, is there at another power."""

    def other(n):
        power = 2 ** round(math.log2(n))
        return (power << shape) + n - power if n > 32 and abs(n - power) <= 1 else _number(n, shape)

    return tuple(map(other, args))


def _more(value, ranks, shape):
    """More of something that N ranks share, with the same rest; a few stay few."""
    return value if value is None or value <= 2 * ranks + 1 else value + shape * ranks


def _rotated(value, shape):
    return tuple(value[shape % len(value) :] + value[: shape % len(value)]) if value else value


def _more_layers(args, shape):
    """The first layers once more at the end."""
    return tuple([*value, *value[:shape]] if isinstance(value, list) else value for value in args)


def _later(args, shape):
    """A record of operations, each of which takes longer."""
    slower = 1 + shape / 4

    def later(t):
        return None if t is None else slower * t

    return ([op._replace(start=later(op.start), wait=later(op.wait), end=later(op.end)) for op in args[0]],)


def _slower_rows(args, shape):
    """Moments of the ranks: slower, and the ranks in another order."""
    rows, worth = args
    return [[(1 + shape) * t for t in _rotated(tuple(row), shape)] for row in rows], (1 + shape) * worth


def _larger_memory(args, shape):
    """Another GPU; a plan that fits to the byte stays as it is."""
    memory, *plan = args
    return (memory + memory // 8 * shape if memory > 1e9 else memory, *plan)


PLAIN = {
    "count": _same,  # a schedule
    "fit_alpha_beta": _same,  # times of one alpha and beta
    "bandwidths": _same,  # a line of nccl-tests
    "first_missing": _same,  # a record
    "plan": lambda args, shape: _same(args, shape) if len(args) == 1 else _each(args, shape),
    "tree_cost": _other_powers,
    "assign": _multiples,
    "all_reduces": _multiples,
    "best_cap": _larger_layers,
    "least_micro_batches": _share,
    "state_bytes": _scaled,
    "least_ranks": _scaled,
    "exposed": _later,
    "straggler": _slower_rows,
    "largest_batch": _larger_memory,
    "smallest_window": _more_layers,
    "forward_pass": _more_layers,
}


# ---- rules for options of harnesses


def _seed(value, ranks, shape):
    return value + 1000 * shape


def _widths(value, ranks, shape):
    """Wider layers, those alike still alike, and one more of them; a single width is only wider."""
    if isinstance(value, int):
        return value + shape
    wider = tuple(width + shape for width in value)
    return (*wider, wider[-1])


def _unlike(widths, ranks, shape):
    """Widths between which all layers have different sizes, by which a copy is known."""
    wider = tuple(width + shape for width in widths)
    sizes = [m * n for m, n in pairwise(wider)]
    return wider if len({*sizes}) == len(sizes) else _unlike(wider, ranks, 1)


def _sizes(value, ranks, shape):
    """Sizes whose sum has the same rest."""
    return tuple(size + shape * ranks for size in value) if max(value) >= SMALL else value


def _last_larger(value, ranks, shape):
    return (*value[:-1], value[-1] + shape) if value else value


def _nodes(value, ranks, shape):
    return value + shape if value >= SMALL else value


BY_NAME = {
    "seed": _seed,
    "hidden": _widths,
    "widths": _unlike,
    "sizes": _sizes,
    "names": lambda value, ranks, shape: _rotated(value, shape),
    "samples": _more,
    "size": lambda value, ranks, shape: _more(value, 2 * ranks, 8 * shape) if value >= 16 else value,
    "block": lambda value, ranks, shape: value + 4 * shape,
    "shape": _last_larger,
    "shapes": lambda value, ranks, shape: tuple(_last_larger(each, ranks, shape) for each in value),
    "n": _nodes,
}
MODEL: dict[str, Any] = {"hidden": (11, 5, 13)}
DEFAULTS: dict[str, dict[str, Any]] = {  # what harnesses take where a run does not say
    "training.train": MODEL,
    "training.train_in_place": MODEL,
    "training.train_accumulating": MODEL,
    "training.state_after_start": MODEL,
    "sharded.train": {"hidden": sharded.HIDDEN},
    "sharded.train_and_save": {"hidden": sharded.HIDDEN},
    "local_steps.train": {"hidden": (7, 5)},
    "host_tier.train": {"sizes": host_tier.SIZES},
    "window.through": {"widths": window.WIDTHS},
}


def _chain(args, shape):
    """``recomputation.with_and_without``: a longer and wider chain of blocks; a single block stays one."""
    layers, batch, sequence, hidden, heads, dropout = args
    return (
        layers + shape * (layers > 1),
        batch + shape % 2,
        sequence + 8 * shape,
        hidden + heads * shape,
        heads,
        dropout,
    )


def _steps(args, shape):
    """``optimizers``: more numbers, other gradients, one more step where there are several."""
    seed, dims, steps, *rest = args
    return seed + 1000 * shape, tuple(d + shape * (d > 1) for d in dims), steps + shape * (steps > 1), *rest


def _numels(args, shape):
    """``overlap.one_step``: larger layers and as many buckets."""
    numels, cap = args
    return [numel * (1 + shape) for numel in numels], cap * (1 + shape)


POSITIONAL = {
    "recomputation.with_and_without": _chain,
    "optimizers.several_adam_steps": _steps,
    "optimizers.several_adamw_steps": _steps,
    "overlap.one_step": _numels,
}
