"""With this folder on PYTHONPATH, a machine with one GPU has two, for the ranks that ringzero starts.

NCCL takes one rank a GPU, unless it believes that the ranks are on different machines. Then it sends through sockets.
"""

import os

from ringzero.ranks import devices

APART = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "lo"}
enter, count = devices.enter, devices._gpus
assert enter.__module__ == devices.__name__, "once is enough: the ranks would get the same number"


def enter_the_one(device, local_rank):
    if device == "cuda":
        os.environ.update(APART, NCCL_HOSTID=str(local_rank))
    enter(device, 0)


devices.enter = enter_the_one
devices._gpus = lambda: 2 if count() else 0
