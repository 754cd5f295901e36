"""All packets on the loopback of another process's network namespace, as the kernel saw them.

A packet socket is opened inside the namespace and used outside (packet(7)). What runs inside can neither see nor stop
it. The kernel writes the packets into a ring of memory that is shared with this process (its ``TPACKET_V3``).
"""

import functools
import mmap
import select
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator

import psutil

from ringzero.processes import sandbox

BLOCK_BYTES, BLOCKS = 2**18, 256  # 64 MiB: so much may travel before this process looks
RETIRE_MS = 2  # a block that is not full is handed over after so long
ALL_PROTOCOLS = 3  # ETH_P_ALL
SOL_PACKET, RX_RING, STATISTICS, VERSION, IGNORE_OUTGOING, V3 = 263, 5, 6, 10, 23, 2  # linux/if_packet.h
BLOCK = struct.Struct("=8x4I")  # status, number of packets, where the first is, bytes in use
STATUS_AT, THEIRS, OURS = 8, 0, 1
PACKET = struct.Struct("=I8xII4xHH")  # where the next is, bytes here, bytes there were, where the frame is, where IP is
COUNTS = struct.Struct("=3I")  # packets, packets lost, freezes

# In a process of its own: only one with a single thread may enter another user's namespace.
_OPEN_THERE = """
import ctypes, fcntl, os, socket, sys
pid, channel = map(int, sys.argv[1:])
NS_GET_USERNS, CLONE_NEWUSER, CLONE_NEWNET = 0xB701, 0x10000000, 0x40000000
setns = ctypes.CDLL(None, use_errno=True).setns
def enter(namespace, kind):
    if setns(namespace, kind):
        sys.exit(os.strerror(ctypes.get_errno()))
network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
owner = fcntl.ioctl(network, NS_GET_USERNS)
if os.fstat(owner).st_ino != os.stat("/proc/self/ns/user").st_ino:
    enter(owner, CLONE_NEWUSER)
enter(network, CLONE_NEWNET)
packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
socket.send_fds(socket.socket(fileno=channel), [b"."], [packets.fileno()])
"""


@functools.cache
def why_not_here() -> str | None:
    """Why this machine does not let the network of a box be looked at; None if it does. Needs boxes."""
    box = sandbox.enclosed([sys.executable, "-c", "print(flush=True); input()"], [], sandbox.Limits())
    with subprocess.Popen(box, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as outermost:
        try:
            outermost.stdout.readline()  # type: ignore[union-attr]
            innermost = max(psutil.Process(outermost.pid).children(recursive=True), key=lambda child: child.pid)
            Tap(innermost.pid).close()
        except (OSError, ValueError, psutil.Error) as error:
            return str(error)
        finally:
            outermost.kill()
    return None


class Tap:
    """What arrives on the loopback of the namespace in which the process ``pid`` is. Raises OSError if it cannot look.

    ``close()`` gives its memory back.
    """

    def __init__(self, pid: int):
        self._socket = _packet_socket(pid)
        self._socket.setsockopt(SOL_PACKET, VERSION, V3)
        ring = BLOCK_BYTES, BLOCKS, BLOCK_BYTES, BLOCKS, RETIRE_MS, 0, 0
        self._socket.setsockopt(SOL_PACKET, RX_RING, struct.pack("7I", *ring))
        self._socket.setsockopt(SOL_PACKET, IGNORE_OUTGOING, 1)  # each packet once
        self._memory = mmap.mmap(self._socket.fileno(), BLOCK_BYTES * BLOCKS)
        self._block = 0  # the next that the kernel hands over
        self._socket.bind(("lo", ALL_PROTOCOLS))
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def wait(self, seconds: float) -> None:
        """Return when there are packets, or after so many seconds."""
        self._poll.poll(seconds * 1000)

    def packets(self) -> Iterator[memoryview]:
        """Each packet that is there, from its IP header on. It is to be used before the next one is asked for."""
        with memoryview(self._memory) as memory:
            while True:
                start = self._block * BLOCK_BYTES
                status, count, first, _ = BLOCK.unpack_from(memory, start)
                if not status & OURS:
                    return
                at = start + first
                for _ in range(count):
                    following, here, _, frame, ip = PACKET.unpack_from(memory, at)
                    with memory[at + ip : at + frame + here] as packet:
                        yield packet
                    at += following
                struct.pack_into("=I", memory, start + STATUS_AT, THEIRS)
                self._block = (self._block + 1) % BLOCKS

    def lost(self) -> int:
        """How many packets did not fit into the ring since this was last asked."""
        return COUNTS.unpack(self._socket.getsockopt(SOL_PACKET, STATISTICS, COUNTS.size))[1]

    def close(self) -> None:
        self._memory.close()
        self._socket.close()


def _packet_socket(pid: int) -> socket.socket:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-I", "-S", "-c", _OPEN_THERE, str(pid), str(theirs.fileno())]
        tried = subprocess.run(command, pass_fds=[theirs.fileno()], capture_output=True, text=True, check=False)
        if tried.returncode:
            raise OSError(f"the network of process {pid} cannot be looked at: {tried.stderr.strip()[-300:]}")
        _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
        return socket.socket(fileno=descriptors[0])
