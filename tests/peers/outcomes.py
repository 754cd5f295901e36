"""What comes of a program under a trainer: "right", "wrong", "hangs", or what it was refused with.

``python -m tests.peers.outcomes`` runs every program under every trainer, each in ranks of its own, and writes the
table that the page "Beside torch" shows and that the tests hold us to.
"""

import datetime
import functools
import json
import warnings
from pathlib import Path

import torch
from tqdm import tqdm

from ringzero import RankError, RankTimeout, launch
from tests.peers.behaviours import BEHAVIOURS
from tests.peers.trainers import TRAINERS, OneProcess

TABLE = Path(__file__).resolve().parents[2] / "book" / "beside_torch.json"
TOLD = "naive and flat cannot find out; they take the names in advance."
SHARDED = "A rank has only a shard."
WHY = {
    "Checkpointing with reentry of parts that share a layer": "The layer's gradient comes in two halves. After the "
    "first one its bucket is on its way already.",
    "An embedding with max_norm": "Its forward pass writes to the rows that a rank's samples use.",
    "A layer that is never used, unannounced": "A rank cannot know whether another rank has a gradient. PyTorch's "
    "DDP says so at the next forward pass, we at the end of this backward pass.",
    "A layer that is never used, SGD": TOLD,
    "A layer that is never used, AdamW": TOLD,
    "A layer that is used in every second step, AdamW": TOLD,
    "A layer that only one rank's samples use, AdamW": "naive and flat cannot find out.",
    "A loss that reaches half of the layers, announced": TOLD,
    "Two models in one loss, whose order differs between ranks": "Rank 0 waits for a message of the first model, "
    "rank 1 for one of the second. DDP and stage 1 wait for nothing before the end; stage 2 waits only where many "
    "gradients are on their way.",
    "A layer is unfrozen in between": "Its optimizer has no shard of it. add_param_group makes one.",
    "Rank 0 alone evaluates the module, not the wrapper": "In stage 3 no rank has all parameters, so all must help.",
    "AveragedModel of the wrapper": "It copies the wrapper. " + SHARDED,
    "deepcopy of the wrapper, to evaluate": SHARDED,
    "torch.save and torch.load of the wrapper, to evaluate": SHARDED,
    "A parameter is overwritten in place in between": "In stage 3 there is nothing to write to.",
    "A penalty of the weights themselves in the loss": "In stage 3 weights are there only while their unit computes.",
}
RIGHT, WRONG, HANGS = "right", "wrong", "hangs"
TOLERANCE = 1e-10  # sums in another order, in float64
LONGEST = 300  # characters of a message that are kept


@functools.cache
def alone(name):
    """One process on the whole batch."""
    with warnings.catch_warnings(action="ignore"):  # torch's, of create_graph
        return BEHAVIOURS[name](OneProcess)


def on_a_rank(names, trainer):
    warnings.simplefilter("ignore")
    return [BEHAVIOURS[name](TRAINERS[trainer]) for name in names]


def of(name, trainer, timeout=60):
    """The outcome of one program, in two ranks of its own."""
    try:
        ranks = launch(on_a_rank, [name], trainer, timeout=timeout).returns
    except RankTimeout:
        return HANGS
    except RankError as error:
        return said(str(error))
    return RIGHT if all(is_close(alone(name), rank[0]) for rank in ranks) else WRONG


def is_close(expected, state):
    return expected.keys() == state.keys() and all(
        torch.allclose(expected[key], state[key], rtol=TOLERANCE, atol=TOLERANCE) for key in expected
    )


def said(message):
    """The sentence of an error, without its traceback."""
    kinds = ("Error", "Exception", "Unsupported")
    line = next(line for line in message.splitlines() if line.partition(":")[0].endswith(kinds))
    kind, _, text = line.partition(": ")
    return f"{kind.rpartition('.')[2]}: {text.strip()}"[:LONGEST]


def main():
    """Fill the table as outcomes come.

    It has torch's version, the day, and ``{program: {"outcomes": {trainer: outcome}, "why": why ours deviates}}``.
    """
    rows = {}
    table = {"torch": torch.__version__.partition("+")[0], "date": f"{datetime.date.today()}", "programs": rows}
    for name in tqdm(BEHAVIOURS):
        rows[name] = {"outcomes": {trainer: of(name, trainer) for trainer in TRAINERS}, "why": WHY.get(name, "")}
        TABLE.write_text(json.dumps(table, indent=1) + "\n")


def committed():
    """The rows of the committed table."""
    return json.loads(TABLE.read_text())["programs"]


if __name__ == "__main__":
    main()
