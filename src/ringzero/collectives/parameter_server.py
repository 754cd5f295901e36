"""Parameter servers: every rank pushes its gradients to the ranks that serve, and pulls the sums back.

Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014. With one server its link
carries everything, as in the flat all-reduce. With N servers each has a chunk, and every rank sends what a ring sends.
"""

import numpy as np

from ringzero.collectives.schedule import Round, Rounds, Schedule, Traffic, check_world_size, is_whole


def parameter_server_all_reduce(world_size: int, servers: int = 1) -> Schedule:
    """Ranks 0 to ``servers`` - 1 keep a chunk of the buffer each; all ranks, servers too, bring gradients.

    N-1 rounds of pushes and N-1 of pulls, S/servers bytes each. In a round a server deals with one rank only. Raises
    ValueError unless ``servers`` is 1 to N.
    """
    check_world_size(world_size)
    if not is_whole(servers) or not 1 <= servers <= world_size:
        raise ValueError(f"servers is {servers!r}; with {world_size} ranks it is 1 to {world_size}")
    rounds = _exchange(world_size, servers, push=True) + _exchange(world_size, servers, push=False)
    return Schedule("all_reduce", "parameter_server", world_size, servers, rounds)


def sharded_parameter_server_all_reduce(world_size: int) -> Schedule:
    """Every rank serves a chunk: a reduce-scatter and an all-gather in which every pair of ranks deals directly."""
    rounds = parameter_server_all_reduce(world_size, servers=world_size).rounds
    return Schedule("all_reduce", "sharded_parameter_server", world_size, world_size, rounds)


def _exchange(n, servers, push):
    server = np.arange(servers)

    def ends(k):
        worker = (server + k) % n
        return (worker, server) if push else (server, worker)

    return Rounds(
        n - 1,
        lambda step: Round(*ends(step + 1), chunk=server, reduce=push),
        lambda: (Traffic.of(*ends(k), 1, reduce=push) for k in range(1, n)),
    )
