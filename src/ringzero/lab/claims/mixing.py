"""Claims about runs of ``harness.mixing``: the weights of a graph, and rounds in which ranks mix with neighbours."""

from functools import lru_cache
from itertools import product

import torch

from ringzero.lab.claims import values
from ringzero.lab.claims.collectives import given
from ringzero.lab.claims.traffic import nobody_waits_for_all
from ringzero.lab.harness import mixing
from ringzero.lab.runs import Run

TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "bfloat16": 2e-2, "float16": 2e-3}  # of the largest number


# ``mix``


def has_metropolis_weights(run: Run) -> str | None:
    """The weights are those of Metropolis-Hastings for the run's graph."""
    kind, n = run.option("kind"), run.option("n")
    right, got = mixing.weights(kind, n), run.reports[0].weights
    if not _is_list(got, n) or not all(_is_list(row, n) for row in got):
        return f"returned {_short(got)}, not a list of {n} lists of {n} numbers"
    near = mixing.graph(kind, n)
    for r, s in sorted(product(range(n), repeat=2), key=lambda pair: pair[0] == pair[1]):  # the diagonal at last
        entry = values.one_value(got[r][s])
        if not isinstance(entry, (int, float)) or not abs(entry - right[r][s]) < 1e-6:
            degrees = f"rank {r} has {_many(near[r])}" + (f", rank {s} has {_many(near[s])}" if s != r else "")
            known = isinstance(entry, (int, float))
            found, due = values.apart(entry, right[r][s]) if known else (repr(entry), f"{right[r][s]:g}")
            return f"weights[{r}][{s}] is {found}, expected {due}; {degrees}"
    return None


def _is_list(value, length):
    return isinstance(value, (list, tuple, torch.Tensor)) and len(value) == length


def _many(near):
    return f"{len(near)} neighbour{'s' * (len(near) != 1)}"


def _short(value):
    text = repr(value)
    return text if len(text) < 60 else text[:59] + "…"


def spectral_gap(weights: mixing.Weights) -> float:
    """1 less the largest |eigenvalue| of symmetric weights when the mean is taken out: how far they shrink the rest."""
    n = len(weights)
    return 1 - torch.linalg.matrix_norm(torch.tensor(weights, dtype=torch.float64) - 1 / n, 2).item()


def has_the_gap(run: Run) -> str | None:
    """The gap of the run's weights, which are symmetric."""
    right = spectral_gap(mixing.weights(run.option("kind"), run.option("n")))
    got = values.one_value(run.reports[0].gap)
    if isinstance(got, bool) or not isinstance(got, (int, float)):
        return f"the gap is {got!r}, not a number"
    if abs(got - right) <= 1e-6:
        return None
    mine, due = values.apart(round(got, 9), round(abs(right), 9))
    return f"the gap is {mine}, expected {due}{_other_gap(run, got)}"


def leaves_its_lists(run: Run) -> str | None:
    """The neighbours and the weights that were given stay what they were."""
    changed = run.reports[0].changed
    who = {"neighbours": "metropolis", "weights": "gap"}
    return f"{who[changed]} changed the {changed} that it was given" if changed else None


def _other_gap(run, got):
    """What else ``got`` is of the run's weights, in words."""
    eigenvalues = torch.linalg.eigvalsh(torch.tensor(mixing.weights(run.option("kind"), run.option("n"))).double())
    others = {
        "that is the eigenvalue, and the gap is 1 less its magnitude": eigenvalues.abs().sort().values[-2:][0],
        "that leaves out magnitudes: an eigenvalue below 0 counts as well": 1 - eigenvalues[-2:][0],
        "that leaves out every eigenvalue 1, also one besides that of the mean": 1 - _largest_below_1(eigenvalues),
        "that is for the smallest magnitude": 1 - eigenvalues.abs().min(),
        "that is for the 1 that belongs to the mean": 0.0,
    }
    return next((f"; {said}" for said, other in others.items() if abs(got - float(other)) <= 1e-6), "")


def _largest_below_1(eigenvalues):
    return max((each for each in eigenvalues.abs().tolist() if each < 1 - 1e-9), default=1.0)


# ``rounds``


def mixes(run: Run) -> str | None:
    """After each round every rank has the sum of its row of the weights times what the ranks had."""
    tolerance = TOLERANCE[run.option("precision", "float32")]
    for turn in range(1, run.option("rounds", 1) + 1):
        for rank, report in enumerate(run.reports):
            got, had, n = report.values[turn], report.values[turn - 1], run.world_size
            if got.dtype != had.dtype:
                return f"on rank {rank} x is {had.dtype} and what came back is {got.dtype}"
            what = {"x": _mixed(run, turn)[rank]}
            why = values.close_by_name(f"after round {turn}", [{"x": got.double()}], what, tolerance, rank)
            if why:
                return why + _instead(run, turn, rank, got.double(), tolerance) * (n > 1)
    return None


def _instead(run, turn, rank, got, tolerance):
    weights, before = torch.tensor(_weights(run), dtype=torch.float64), _mixed(run, turn - 1)
    others = {
        "rank r is to use row r of the weights, not column r": weights.T,
        "its own x is missing": weights - weights.diag().diag(),
        "nothing of its neighbours is in it": weights.diag().diag(),
        "the mean of all ranks is not asked for": torch.full_like(weights, 1 / len(weights)),
        "the weights are not used": (weights != 0) / (weights != 0).sum(1, keepdim=True).double(),
        "its own x came in whole, not with its weight": weights - weights.diag().diag() + torch.eye(len(weights)),
    }
    for said, other in others.items():
        if not values.close_by_name("", [{"x": got}], {"x": torch.tensordot(other, before, 1)[rank]}, tolerance):
            return f"; {said}"
    return ""


def _weights(run):
    return mixing.weights(run.option("kind"), run.world_size)


def _mixed(run, rounds):
    """What all ranks have after so many rounds, in fp64. Shape (ranks, *shape)."""
    shape, precision = run.option("shape", (37,)), run.option("precision", "float32")
    return _power(run.option("kind"), run.world_size, run.option("seed"), shape, precision, rounds)


@lru_cache(maxsize=64)
def _power(kind, ranks, seed, shape, precision, rounds):
    x = torch.stack([mixing.value_of(seed, rank, shape, precision).double() for rank in range(ranks)])
    weights = torch.tensor(mixing.weights(kind, ranks), dtype=torch.float64)
    for _ in range(rounds):
        x = torch.tensordot(weights, x, 1)
    return x


@given(mixes)
def talks_to_neighbours_alone(run: Run) -> str | None:
    """In a round rank s sends x once to each other rank r whose row has a weight for s, and nothing else."""
    weights, n, rounds = _weights(run), run.world_size, run.option("rounds", 1)
    size, counted = run.reports[0].values[0].nbytes, [[0] * run.world_size for _ in range(run.world_size)]
    for send, receive in run.messages():
        counted[send.rank][receive.rank] += send.bytes
    for src, dst in ((s, d) for s in range(n) for d in range(n)):
        due = rounds * size * (src != dst and weights[dst][src] != 0)
        if counted[src][dst] != due:
            who = f"rank {src} sent {counted[src][dst]:,} bytes to rank {dst} in {rounds} round{'s' * (rounds > 1)}"
            return f"{who}, expected {due:,}; weights[{dst}][{src}] is {weights[dst][src]:.4g}, x has {size:,} bytes"
    return nobody_waits_for_all(run)


@given(talks_to_neighbours_alone)
def sends_what_it_has(run: Run) -> str | None:
    """Every message is the sender's x, to the last bit."""
    for rank, report in enumerate(run.reports):
        messages = len(report.sent) // run.option("rounds", 1) or 1
        for number, sent in enumerate(report.sent):
            x = report.values[number // messages]
            if sent.dtype != x.dtype or not torch.equal(sent.reshape(-1), x.reshape(-1)):
                return f"rank {rank} sent a message that is not its x"
    return None


@given(mixes)
def leaves_x_alone(run: Run) -> str | None:
    """x and the weights stay what they were, and what is returned has memory of its own, in each round."""
    for rank, report in enumerate(run.reports):
        if not report.kept:
            return f"rank {rank} changed the x it was given"
        if not report.weights_kept:
            return f"rank {rank} changed the weights it was given"
        if not report.new:
            return f"rank {rank} returned the x it was given, or a view of it, not a new tensor"
        if report.again:
            return f"rank {rank} returned the same memory in two rounds: what it had returned first is overwritten"
    return None


def distance(states: list[torch.Tensor]) -> float:
    """Root mean square over the ranks of the distance to their mean."""
    x = torch.stack([state.double().reshape(-1) for state in states])
    return (x - x.mean(0)).square().sum(1).mean().sqrt().item()


@given(mixes)
def comes_closer_as_the_gap_says(run: Run) -> str | None:
    """With symmetric weights the distance to the mean falls by 1 less the gap, or more, in every round."""
    before = distance([report.values[0] for report in run.reports])
    most = before
    for turn in range(1, run.option("rounds", 1) + 1):
        most *= 1 - spectral_gap(_weights(run))
        found = distance([report.values[turn] for report in run.reports])
        if found > most + 1e-5 * before:
            return f"after round {turn} the ranks are {found:.4g} from their mean; the gap allows {most:.4g}"
    return None
