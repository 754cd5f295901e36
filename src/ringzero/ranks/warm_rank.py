"""One rank between calls: torch imported, no threads, no CUDA context; it forks a clean child for each call.

``torchrun`` starts two interpreters, which import torch and fork the ranks: one the even ranks, one the odd ones. To
import takes two seconds of a core and 150 MB, so it is done twice and not by every rank. Forked from one interpreter,
all ranks would iterate over sets in one order, and hide the programs that depend on that order and hang on a real
cluster. In a box, torchrun forks the first interpreter from itself.

Each rank connects to the socket of the pool that asked for it, says which rank it is, and then serves one call at a
time:

    pool -> worker   {"call": directory, "world_size": n, ...}     fork a child that runs the job
    pool -> worker   {"stack": true}                               have the child write where it is
    pool -> worker   {"kill": true}                                kill that child and all it started
    worker -> pool   {"exit": status}                               child gone, and every descendant of it

The child leaves its result, its error and its output as files in the call's directory. When the pool's end of the
socket closes, for whatever reason, the worker kills its child and leaves.
"""

import contextlib
import faulthandler
import gc
import importlib.util
import json
import multiprocessing
import os
import re
import select
import signal
import socket
import stat
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringzero import processes
from ringzero.ranks import devices, node

if TYPE_CHECKING:
    from torch.distributed import Store

# What every call needs. numpy loads numpy.random when it is first used: 10 ms in every child.
WARM = ("cloudpickle", "numpy.random", "safetensors.torch", "torch.distributed", "ringzero.record.recording_group")
DYNAMO = "torch._dynamo"  # an optimizer's first step imports it, in 1 to 2 s
OPTIMIZER = re.compile(rb"^[^#\n]*\boptim\b", re.MULTILINE)  # the module's name in code or among a pickle's names
IDLE_SECONDS = 900  # an unused pool ends by itself; the next call starts a fresh one
STACK_SIGNAL = signal.SIGUSR1
LOOK_SECONDS = 0.005  # between two looks at which ranks are done, where some may be lost


def main(socket_path: str, ranks: int, warm: bool, foreseen: Iterable[str] = ()) -> None:
    """Import what calls need, fork this interpreter's share of the ``ranks``, and stay until all have ended."""
    import_once([*WARM, *foreseen] if warm else [])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the notebook's to handle
    for rank in range(int(os.environ["LOCAL_RANK"]), ranks, int(os.environ["LOCAL_WORLD_SIZE"])):
        if os.fork() == 0:
            try:
                os.setsid()
                processes.die_with_parent()
                serve(rank, socket_path, warm)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)  # unloading torch takes longer than everything else here
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def serve(rank: int, socket_path: str, warm: bool) -> None:
    """Serve calls until the pool closes its socket, or for ``IDLE_SECONDS`` asks for nothing."""
    processes.adopt_orphans()  # a daemon that a student's code started is still ours to end
    wakeup_read, wakeup_write = os.pipe()
    os.set_blocking(wakeup_write, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(socket_path)
    hello = {"rank": rank, "pid": os.getpid(), "parent": os.getppid()}
    connection.sendall(json.dumps(hello).encode() + b"\n")

    child: int | None = None
    pending = b""
    while True:
        inputs: list[Any] = [connection, wakeup_read]
        ready, _, _ = select.select(inputs, [], [], None if child else IDLE_SECONDS)
        if not ready:
            return  # idle
        if wakeup_read in ready:
            os.read(wakeup_read, 4096)
        if connection in ready:
            data = connection.recv(1 << 16)
            if not data:  # the pool's process has ended, perhaps killed before it could clean up
                processes.end(processes.descendants)
                if rank == 0:
                    processes.remove(os.path.dirname(socket_path))
                return
            *messages, pending = (pending + data).split(b"\n")
            for message in map(json.loads, messages):
                if "kill" in message:
                    processes.end(processes.descendants)  # ``_reap`` collects the child
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
            processes.end(processes.descendants)
            child = None
            wished = wishes(call, rank) if warm else []
            connection.sendall(json.dumps({"exit": status}).encode() + b"\n")
            import_once(wished)


def import_once(modules: Iterable[str]) -> None:
    """Import once what calls would have to import each."""
    gc.disable()  # to look through what an import makes, again and again, takes up to a third of its time
    for module in modules:
        importlib.import_module(module)
    gc.freeze()  # a child that collects garbage leaves what is here alone, and shares the memory
    gc.enable()


def _can_be_warm(module: str) -> bool:
    """Whether a module may be imported here once, for all calls: it takes long, and no caller changes it."""
    return module.startswith("ringzero.") or module == DYNAMO


def foreseen(job: bytes) -> list[str]:
    """Of the modules that can be warm, those that a pickled job will import, as far as its text shows.

    Ranks that are forked afterwards have them; else each rank imports them twice, in its first call and after it.
    """
    texts = [job]
    for name, module in list(sys.modules.items()):
        if name.startswith("ringzero.") and name.encode() in job and module.__file__:
            texts.append(Path(module.__file__).read_bytes())
    return [DYNAMO] if any(OPTIMIZER.search(text) for text in texts) else []


def _wish(call: Path, rank: int, had: set[str]) -> None:
    """In the child: write down the modules that it had to import, so that the rank imports them for later calls."""
    wanted = [module for module in sys.modules if _can_be_warm(module) and module not in had]
    with contextlib.suppress(OSError):
        (call / f"{rank}.wishes").write_text("\n".join(wanted))


def wishes(call: Path, rank: int) -> list[str]:
    """The modules that the last call's child wrote down, without what is no module: it may write nonsense."""
    with contextlib.suppress(OSError, ValueError):
        with open(call / f"{rank}.wishes", opener=processes.regular) as file:
            wanted = file.read(1 << 16).split()
        return [module for module in wanted if _can_be_warm(module) and _exists(module)]
    return []


def _exists(module: str) -> bool:
    with contextlib.suppress(ImportError, ValueError):
        return importlib.util.find_spec(module) is not None
    return False


def _reap(child: int | None) -> int | None:
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


def _run_child(rank: int, job: dict[str, Any]) -> None:
    """In the forked child: run the job, leave its files, never return to the worker's loop."""
    status = 1
    try:
        os.setsid()
        if job["nodes"]:
            node.enter(job["nodes"][rank // _ranks_per_node(job)])
        processes.die_with_parent()
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


def _ranks_per_node(job: dict[str, Any]) -> int:
    return job["world_size"] // (len(job["nodes"]) or 1)


def run_job(rank: int, job: dict[str, Any], call: Path) -> int:
    """Run the pickled function as ``rank`` of ``job["world_size"]``; 0 if it returned and its result is written."""
    import cloudpickle

    from ringzero.ranks import plain_data
    from ringzero.record import sources

    ranks_per_node = _ranks_per_node(job)
    group_rank, local_rank = divmod(rank, ranks_per_node)
    places = {"RANK": rank, "WORLD_SIZE": job["world_size"], "GROUP_RANK": group_rank, "LOCAL_RANK": local_rank}
    places |= {"ROLE_RANK": rank, "ROLE_WORLD_SIZE": job["world_size"]}
    places |= {"LOCAL_WORLD_SIZE": ranks_per_node}
    os.environ.update({name: str(value) for name, value in places.items()})
    os.environ.pop("TORCHELASTIC_RUN_ID", None)  # a launch inside this call starts ranks of its own
    os.environ["TMPDIR"] = tempfile.tempdir = str(call / "tmp")  # it goes with the call
    with contextlib.suppress(OSError):
        os.chdir(job["cwd"])
    sys.path[:] = job["sys_path"]
    sys.argv = [""]
    sources.install(job["sources"])
    had = set(sys.modules)
    try:
        store = _init_process_group(rank, job, call)
        if job["may_lose"]:  # a rank that dies while others still connect to it would be an error there
            _wait_for_all("connected", store, rank, job, call)
        function, args = cloudpickle.loads((call / "job.pkl").read_bytes())
        result = function(*args)
        devices.leave(job["device"])
        unfinished = call / f"{rank}.unfinished"
        plain_data.dump(result, unfinished)
        unfinished.rename(call / f"{rank}.result")
        # A rank that exits closes its connections: wait until all ranks are done with them.
        _wait_for_all("done", store, rank, job, call)
        return 0
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        if (call / f"{rank}.result").exists():
            return 0  # this rank's own part was done; the rank that failed reports why
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
    finally:
        _wish(call, rank, had)


def _wait_for_all(what: str, store: "Store", rank: int, job: dict[str, Any], call: Path) -> None:
    """Wait until all ranks have come here, or are gone where some may be lost."""
    keys = {f"{what}/{r}": call / f"{r}.gone" for r in range(job["world_size"])}
    store.set(f"{what}/{rank}", "")
    if not job["may_lose"]:
        store.wait(list(keys), timedelta(seconds=job["timeout"]))
        return
    while not all(gone.exists() or store.check([key]) for key, gone in keys.items()):
        time.sleep(LOOK_SECONDS)


def _init_process_group(rank: int, job: dict[str, Any], call: Path) -> "Store":
    """The default group of this call, on a store of its own: nothing is shared with the call before."""
    import torch
    import torch.distributed as dist

    if job["threads"] not in (None, torch.get_num_threads()):  # the pool may have more ranks than this call
        torch.set_num_threads(job["threads"])
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # a fork repeats its parent's draws otherwise
    devices.enter(job["device"], int(os.environ["LOCAL_RANK"]))
    store = dist.FileStore(str(call / "store"), job["world_size"])
    dist.init_process_group(
        _backend(rank, job, call),
        store=dist.PrefixStore("group", store),
        rank=rank,
        world_size=job["world_size"],
        timeout=timedelta(seconds=job["timeout"] + 60),  # the call's own limit strikes first and explains more
    )
    return dist.PrefixStore("call", store)


def _backend(rank: int, job: dict[str, Any], call: Path) -> str:
    """The backend's name; that of one that records, where that is asked for or costs nothing."""
    backend = devices.backend(job["device"])
    if not (job["trace"] or devices.records_always(job["device"])):
        return backend
    from ringzero.record import recorder, recording_group

    name = recording_group.register(backend, call / f"{rank}.trace", rank, devices.creator(job["device"]))
    writer = recorder.of_this_process()
    assert writer is not None
    writer.may_lose = job["may_lose"]
    return name


def _redirect_output(path: Path) -> None:
    """Send this process's and its children's stdout and stderr to ``path``, as they are written."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for target in (1, 2):
        os.dup2(descriptor, target)
    os.close(descriptor)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115


def _leave_torchrun(arguments: list[str]) -> None:
    """In a process that torchrun has forked: give up what is torchrun's. All but the first become new interpreters.

    The first needs no import of torch. Its ranks must not have torchrun's connections, nor its way to end by a signal.
    """
    if os.environ["LOCAL_RANK"] != "0":
        os.execv(sys.executable, [sys.executable, "-m", "ringzero.ranks.warm_rank", *arguments])
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):  # the one that lists them
            if descriptor > 2 and not stat.S_ISFIFO(os.fstat(descriptor).st_mode):  # a pipe tells torchrun of our end
                os.close(descriptor)
    for name in os.environ["TORCHELASTIC_SIGNALS_TO_HANDLE"].split(","):
        signal.signal(signal.Signals[name], signal.SIG_DFL)


if __name__ == "__main__":
    if multiprocessing.parent_process() is not None:
        _leave_torchrun(sys.argv[1:])
    main(sys.argv[1], int(sys.argv[2]), "--cold" not in sys.argv, [name for name in sys.argv[3:] if name[:2] != "--"])
    os._exit(1)  # with 0, torchrun would wait for what a function that it forked for returned
