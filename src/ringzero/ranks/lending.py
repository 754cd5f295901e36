"""Ranks that one process lends to others, one after another: a build of the book to the kernels of its pages.

A pool takes five to eight seconds of a core to start. Each of its ranks forks a child for each call, so who borrows it
finds ranks as new ones are.
"""

import contextlib
import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from ringzero import processes
from ringzero.ranks.pool import LENDER, RANKS, Pool


@contextlib.contextmanager
def to_children() -> Iterator[None]:
    """Until the end of the ``with`` block, processes that this one starts borrow their pools from it."""
    folder = Path(tempfile.mkdtemp(prefix="ringzero-", dir=processes.short_temporary_folder()))
    idle: list[Pool] = []
    with contextlib.ExitStack() as at_the_end:
        at_the_end.callback(processes.remove, folder)
        listener = at_the_end.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        listener.bind(str(folder / "lender.sock"))
        listener.listen()
        os.environ[LENDER] = str(folder / "lender.sock")
        at_the_end.callback(os.environ.pop, LENDER)
        lent: list[threading.Thread] = []

        def accept() -> None:
            with contextlib.suppress(OSError):  # the listener is shut down
                while True:
                    borrower, _ = listener.accept()
                    lent.append(threading.Thread(target=_lend, args=(idle, borrower), daemon=True))
                    lent[-1].start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield
            listener.shutdown(socket.SHUT_RDWR)
            for thread in [accepting, *lent]:
                thread.join()
        finally:  # after Ctrl-C, pools that are still lent end with this process
            for pool in idle:
                pool.close()


def _lend(idle: list[Pool], borrower: socket.socket) -> None:
    """Hand an idle pool, or a new one, to the ``borrower``, and take it back when that is done with it."""
    with borrower:
        try:
            pool = idle.pop()
        except IndexError:
            pool = Pool(RANKS, optimizers=True)
        returned = False
        with contextlib.suppress(OSError):
            socket.send_fds(borrower, [pool.told()], [worker.fileno() for worker in pool.workers])
            returned = borrower.recv(1) != b""  # nothing from one that ended in a call
    if returned and pool.alive():
        idle.append(pool)
    else:
        pool.close()
