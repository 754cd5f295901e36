"""One rank between calls: torch imported, no threads, no CUDA context; it forks a clean child for each call.

``torchrun`` starts one of these per rank. It connects to the socket of the pool that
asked for it, says which rank it is, and then serves one call at a time:

    pool -> worker   {"call": directory, "world_size": n, ...}     fork a child that runs the job
    pool -> worker   {"stack": true}                               have the child write where it is
    pool -> worker   {"kill": true}                                kill that child and all it started
    worker -> pool   {"exit": status}                              child gone, and every descendant of it

The child leaves its result, its error and its output as files in the call's directory. When the
pool's end of the socket closes, for whatever reason, the worker kills its child and leaves.
"""

import contextlib
import ctypes
import faulthandler
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
import traceback
from datetime import timedelta
from pathlib import Path

from ringzero.launch import leftovers

IDLE_SECONDS = 900  # an unused pool ends by itself; the next call starts a fresh one
STACK_SIGNAL = signal.SIGUSR1


def main(socket_path, warm):
    if warm:  # these imports are done once, here, for all calls
        import cloudpickle  # noqa: F401
        import numpy.random  # noqa: F401  (numpy itself loads it when first used: 10 ms in every child)
        import safetensors.torch  # noqa: F401
        import torch.distributed

        from ringzero.launch import plain, sources, trace  # noqa: F401

    _become_reaper()
    rank, agent = int(os.environ["RANK"]), os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the notebook's to handle
    wakeup_read, wakeup_write = os.pipe()
    os.set_blocking(wakeup_write, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(socket_path)
    connection.sendall(json.dumps({"rank": rank, "pid": os.getpid()}).encode() + b"\n")

    child, pending = None, b""
    while True:
        ready, _, _ = select.select([connection, wakeup_read], [], [], None if child else IDLE_SECONDS)
        if not ready:
            return  # idle
        if wakeup_read in ready:
            os.read(wakeup_read, 4096)
        if connection in ready:
            data = connection.recv(1 << 16)
            if not data:  # the notebook is gone, perhaps without a chance to clean up
                leftovers.end(leftovers.descendants)
                if rank == 0:
                    leftovers.remove(os.path.dirname(socket_path))
                if os.getppid() == agent:  # torchrun on several nodes would wait minutes for the others' goodbye
                    os.kill(agent, signal.SIGKILL)
                return
            *messages, pending = (pending + data).split(b"\n")
            for message in map(json.loads, messages):
                if "kill" in message:
                    leftovers.end(leftovers.descendants)  # ``_reap`` collects the child
                elif "stack" in message:
                    if child is not None:
                        os.kill(child, STACK_SIGNAL)
                elif child is None:
                    child, call = os.fork(), Path(message["call"])
                    if child == 0:
                        signal.set_wakeup_fd(-1)
                        for descriptor in (wakeup_read, wakeup_write):
                            os.close(descriptor)
                        connection.close()
                        _run_child(rank, message)
        status = _reap(child)
        if status is not None:
            leftovers.end(leftovers.descendants)
            child = None
            wants_dynamo = warm and _wish(call, rank).exists()
            connection.sendall(json.dumps({"exit": status}).encode() + b"\n")
            if wants_dynamo:
                import torch._dynamo  # noqa: F401  (for the next call: the first optimizer of a process needs it, 2 s)


def _wish(call, rank):
    """The file by which a child says that it had to import torch._dynamo."""
    return call / f"{rank}.dynamo"


def _become_reaper():
    """Adopt orphaned descendants (Linux), so that a daemon started by a student's code is still ours to end."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def _reap(child):
    """Collect every dead child; the exit code of ``child`` (negative: the signal) if it is among them."""
    status = None
    while True:
        try:
            pid, raw = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == child:
            status = os.waitstatus_to_exitcode(raw)


def _run_child(rank, job):
    """In the forked child: run the job, leave its files, never return to the worker's loop."""
    status = 1
    try:
        os.setsid()
        _die_with_parent()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        call = Path(job["call"])
        _redirect_output(call / f"{rank}.out")
        stacks = open(call / f"{rank}.stack", "w")  # noqa: SIM115  (faulthandler keeps it)
        faulthandler.enable(stacks)
        faulthandler.register(STACK_SIGNAL, stacks, all_threads=False)
        status = run_job(rank, job, call)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(status)


def run_job(rank, job, call):
    """Run the pickled function as ``rank`` of ``job["world_size"]``; 0 if it returned and its result is written."""
    import cloudpickle

    from ringzero.launch import plain, sources

    node, local_rank = divmod(rank, job["ranks_per_node"])
    places = {"RANK": rank, "WORLD_SIZE": job["world_size"], "GROUP_RANK": node}
    places |= {"LOCAL_RANK": local_rank, "LOCAL_WORLD_SIZE": min(job["world_size"], job["ranks_per_node"])}
    os.environ.update({name: str(value) for name, value in places.items()})
    os.environ.pop("TORCHELASTIC_RUN_ID", None)  # a launch inside this call starts ranks of its own
    os.environ["TMPDIR"] = tempfile.tempdir = str(call / "tmp")  # it goes with the call
    with contextlib.suppress(OSError):
        os.chdir(job["cwd"])
    sys.path[:] = job["sys_path"]
    sys.argv = [""]
    sources.install(job["sources"])
    try:
        store = _init_process_group(rank, job, call)
        function, args = cloudpickle.loads((call / "job.pkl").read_bytes())
        result = function(*args)
        if "torch._dynamo" in sys.modules:
            _wish(call, rank).touch()
        unfinished = call / f"{rank}.unfinished"
        plain.dump(result, unfinished)
        unfinished.rename(call / f"{rank}.result")
        # A rank that leaves closes its connections: wait until nobody needs them.
        store.set(f"done/{rank}", "")
        store.wait([f"done/{r}" for r in range(job["world_size"])], timedelta(seconds=job["timeout"]))
        return 0
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        if (call / f"{rank}.result").exists():
            return 0  # its own part was done; whoever failed says so
        report = {
            "time": time.time(),
            "type": type(error).__name__,
            "message": str(error),
            "traceback": sources.format_error(error),
        }
        unfinished = call / f"{rank}.unfinished"
        unfinished.write_text(json.dumps(report))
        unfinished.rename(call / f"{rank}.error")
        return 1


def _init_process_group(rank, job, call):
    """The default group of this call, on a store of its own: nothing is shared with the call before."""
    import torch
    import torch.distributed as dist

    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # a fork repeats its parent's draws otherwise
    if job["device"] != "cpu":
        gpu = (
            torch.device("cuda", int(os.environ["LOCAL_RANK"]))
            if job["device"] == "cuda"
            else torch.device(job["device"])
        )
        torch.cuda.set_device(gpu)
        torch.set_default_device(gpu)
    store = dist.FileStore(str(call / "store"), job["world_size"])
    dist.init_process_group(
        _backend(rank, job, call),
        store=dist.PrefixStore("group", store),
        rank=rank,
        world_size=job["world_size"],
        timeout=timedelta(seconds=job["timeout"] + 60),  # the call's own limit strikes first and explains more
    )
    return dist.PrefixStore("call", store)


def _backend(rank, job, call):
    """Always recorded on the CPU, so that a hang can be explained; on GPUs when asked for."""
    backend = "nccl" if job["device"] == "cuda" else "gloo"
    if job["device"] != "cpu" and not job["trace"]:
        return backend
    from ringzero.launch import trace

    return trace.register(backend, call / f"{rank}.trace")


def _redirect_output(path):
    """Send this process's and its children's stdout and stderr to ``path``, as they are written."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for target in (1, 2):
        os.dup2(descriptor, target)
    os.close(descriptor)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115


def _die_with_parent():
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG (Linux)


if __name__ == "__main__":
    main(sys.argv[1], warm="--cold" not in sys.argv)
    os._exit(0)  # unloading torch takes longer than everything else here
