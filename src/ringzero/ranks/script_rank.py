"""One rank of ``ringzero run``: the user's script as ``__main__``, as torchrun would run it, with its groups recorded.

    python -m ringzero.ranks.script_rank FOLDER [-m] SCRIPT ARGUMENTS ...

It leaves in FOLDER what a rank of ``launch`` does (``ringzero.ranks.job``), and ``R.pid``, its process id.
"""

import atexit
import contextlib
import faulthandler
import json
import os
import runpy
import signal
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

from ringzero import processes

DUMP = "nccl_trace_rank_"  # how the names of NCCL's dumps begin
RECORDER = {"TORCH_FR_BUFFER_SIZE": "2000", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1"}  # torch's: operations that it keeps
# Of no script that uses SIGUSR1 for itself, as many do for a cluster that is about to stop them.
STACK_SIGNAL: int = getattr(signal, "SIGRTMAX", None) or signal.SIGINFO  # type: ignore[attr-defined]


def main(folder: Path, script: str, arguments: list[str], is_module: bool) -> None:
    """Run the script. What it raises, and how it exits, is its own."""
    processes.die_with_parent()  # before torch is imported, which takes seconds
    import torch

    from ringzero.record import recording_group, sources

    if torch.cuda.device_count():  # elsewhere it would only cost time: gloo has a recorder, too
        os.environ.update(RECORDER | {"TORCH_FR_DUMP_TEMP_FILE": str(folder / DUMP)})
    rank = int(os.environ["RANK"])
    stacks = open(folder / f"{rank}.stack", "w")  # noqa: SIM115  (faulthandler keeps it)
    faulthandler.register(STACK_SIGNAL, stacks, all_threads=False)
    (folder / f"{rank}.pid").write_text(str(os.getpid()))
    recording_group.record_all(folder / f"{rank}.trace", rank)
    sys.argv = [script, *arguments]
    try:
        if is_module:
            sys.path[0] = os.getcwd()
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = os.path.dirname(os.path.abspath(script))
            runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if status == 0:
            (folder / f"{rank}.result").touch()
        _leave(status)
    except BaseException as error:
        trace = sources.format_error(error)
        said = {"time": time.time(), "message": str(error), "traceback": trace}
        (folder / f"{rank}.error").write_text(json.dumps(said))
        for line in trace.splitlines():
            print(f"[rank{rank}]: {line}", file=sys.stderr)
        _leave(1)
    (folder / f"{rank}.result").touch()
    _leave(0)


def _leave(status: int) -> NoReturn:
    """End this process as Python does, but for the last: to unload torch with a group that still has threads may abort
    it, and does so more often where the group records.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads that are no daemons
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    _, where, *command = sys.argv
    named = command[0] == "-m"
    main(Path(where), command[named], command[named + 1 :], named)
