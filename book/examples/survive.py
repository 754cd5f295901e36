"""Training that goes on when a process is killed, and takes in new ones. Start it by hand, in several terminals.

    python survive.py --host                 keeps the store, and prints its HOST:PORT; do not kill this one
    python survive.py --store HOST:PORT      a member; start three, kill one, start another

For several machines give --host the address at which the others reach it.
"""

import argparse
import os
import socket
import time

import torch

from ringzero.unsynced.quorum import Quorum, host, until_finished
from ringzero.unsynced.surviving import Surviving


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", nargs="?", const="127.0.0.1", metavar="ADDRESS", help="keep the store")
    parser.add_argument("--store", metavar="HOST:PORT", help="be a member")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--pause", type=float, default=0.2, help="seconds that a step takes at least")
    parser.add_argument("--checkpoint", metavar="FOLDER", help="for when neighbours die at once")
    options = parser.parse_args()
    if options.host:
        store = host(options.host)
        print(f"{options.host}:{store.port}", flush=True)
        until_finished(store)
    elif options.store:
        train(options)
    else:
        parser.error("give --host or --store")


def train(options):
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    quorum = Quorum(options.store, name=f"{socket.gethostname()}-{os.getpid()}", wait=2.0)
    surviving = Surviving(model, torch.optim.AdamW, quorum, checkpoint=options.checkpoint, checkpoint_every=10, lr=0.01)
    while surviving.steps < options.steps or not surviving.finish():
        # The step and the place among the members say which batch this is, so a batch can be done again.
        torch.manual_seed(1000 * surviving.steps + surviving.rank)
        inputs = torch.randn(16, 8)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        loss.backward()
        time.sleep(options.pause)
        counts = surviving.step()
        print(f"step {surviving.steps}, {surviving.world_size} members, loss {loss:.3f}{'' if counts else ', again'}")
    print(f"finished; {surviving.spent.goodput:.0%} of the time was useful")


if __name__ == "__main__":
    main()
