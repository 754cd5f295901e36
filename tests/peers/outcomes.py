"""What comes of a program under a trainer: "right", "refused: …", "stops: …", or "wrong"."""

import torch

from ringzero import RankError, RankTimeout, launch
from tests.peers.behaviours import BEHAVIOURS
from tests.peers.trainers import OURS, TRAINERS, OneProcess

RIGHT, WRONG, HANGS = "right", "wrong", "hangs"
TOLERANCE = 1e-10  # sums in another order, in float64


def alone(name):
    """One process on the whole batch."""
    return BEHAVIOURS[name](OneProcess)


def on_a_rank(names, trainer):
    return [BEHAVIOURS[name](TRAINERS[trainer]) for name in names]


def of(name, trainer, world_size=2):
    """The outcome of one program, in ranks of its own."""
    try:
        ranks = launch(on_a_rank, [name], trainer, world_size=world_size, timeout=60).returns
    except RankTimeout:
        return HANGS
    except RankError as error:
        return said(str(error))
    return compared(name, [rank[0] for rank in ranks])


def compared(name, ranks):
    expected = alone(name)
    return RIGHT if all(is_close(expected, state) for state in ranks) else WRONG


def is_close(expected, state):
    return expected.keys() == state.keys() and all(
        torch.allclose(expected[key], state[key], rtol=TOLERANCE, atol=TOLERANCE) for key in expected
    )


def said(message):
    """The sentence of an error, without what only one run says."""
    line = next(
        line for line in message.splitlines() if line.partition(":")[0].endswith(("Error", "Exception", "Unsupported"))
    )
    kind, _, text = line.partition(": ")
    return f"{kind.rpartition('.')[2]}: {text.strip()}"


def table(progress=lambda rows: rows):
    """``{program: {trainer: outcome}}`` of all, each in ranks of its own."""
    return {name: {trainer: of(name, trainer) for trainer in TRAINERS} for name in progress(list(BEHAVIOURS))}


__all__ = ["OURS"]
