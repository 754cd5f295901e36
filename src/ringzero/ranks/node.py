"""A rank of an emulated cluster enters its node: the network namespace that another process holds."""

import ctypes
import os

from ringzero import processes

INTERFACE = "eth0"  # of every node, to the other nodes
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000  # <linux/sched.h>


def enter(holder: int) -> None:
    """Move this process, which has one thread, into the user and network namespaces of the process ``holder``.

    Raises OSError if the kernel refuses, or the holder has ended.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for name, kind in (("user", CLONE_NEWUSER), ("net", CLONE_NEWNET)):
        with open(f"/proc/{holder}/ns/{name}") as namespace:
            if libc.setns(namespace.fileno(), kind):
                number = ctypes.get_errno()
                raise OSError(number, f"a rank could not enter its node's {name} namespace: {os.strerror(number)}")
    processes.stay_visible()
    os.environ["GLOO_SOCKET_IFNAME"] = INTERFACE
