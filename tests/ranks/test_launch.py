"""``launch``: what comes back, what a failure says, and that nothing is left behind."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ringzero import RankError, Ranks, RankTimeout, launch
from ringzero.ranks import plain_data, pool, running


def everything(word, number):
    print(f"{word} from rank {dist.get_rank()}")
    os.write(2, b"straight to the descriptor\n")
    total = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(total)
    return {
        "rank": dist.get_rank(),
        "world_size": dist.get_world_size(),
        "total": total,
        "number": number,
        "cwd": os.getcwd(),
    }


@pytest.mark.parametrize("world_size", [5, 1, 2, 3, 4])  # the largest first: smaller calls use some of its ranks
def test_returns_output_and_seconds_by_rank(world_size):
    ranks = launch(everything, "hello", 2.5, world_size=world_size)
    assert isinstance(ranks, Ranks)
    assert ranks.world_size == world_size
    for rank, value in enumerate(ranks.returns):
        assert value["rank"] == rank
        assert value["total"].item() == sum(range(world_size))
        assert (value["number"], value["world_size"], value["cwd"]) == (2.5, world_size, os.getcwd())
        assert ranks.output[rank] == f"hello from rank {rank}\nstraight to the descriptor\n"
    assert 0 < ranks.seconds < 20
    assert "rank 0 │ hello from rank 0" in repr(ranks)
    assert "&lt;" not in ranks._repr_html_() or "<pre" in ranks._repr_html_()


def test_what_a_rank_prints_is_text_in_a_page_not_html():
    page = launch(lambda: print("<b>bold</b>"), world_size=1)._repr_html_()
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert "<b>" not in page


def test_a_module_that_ranks_have_not_imported_travels_by_name():
    from ringzero_course.tasks import characters

    builtin = torch._C._functions  # in no sys.modules
    functions = launch(lambda: (characters.__name__, builtin.__name__), world_size=1).returns
    assert functions == [("ringzero_course.tasks.characters", "torch._C._functions")]


def test_closures_and_lambdas_travel_by_value():
    offset = torch.arange(3)
    assert launch(lambda x: (offset + x).tolist(), 10).returns == [[10, 11, 12]] * 2


def test_nothing_is_shared_between_calls():
    def leave_something():
        import builtins

        already = hasattr(builtins, "left")
        builtins.left = True
        os.environ["LEFT"] = "1"
        return already, float(np.random.rand())

    first, second = launch(leave_something), launch(leave_something)
    assert [r[0] for r in first.returns + second.returns] == [False] * 4
    assert len({r[1] for r in first.returns + second.returns}) == 4, "a fork must not repeat its parent's random draws"


def test_plain_data_survives_exactly():
    def awkward():
        return {
            "float": [0.1, float("inf"), -0.0],
            "nan": float("nan"),
            "complex": 1 + 2j,
            "bytes": b"\x00\xff",
            "sets": [{1, 2.5}, frozenset(["a"]), set()],
            (1, "tuple key"): (None, True, 2**80, "text"),
            "bfloat16": torch.tensor([1.5], dtype=torch.bfloat16),
            "complex128": torch.tensor([1 + 2j], dtype=torch.complex128),
            "empty": torch.empty(0, 3),
            "scalar": torch.tensor(3),
            "transposed": torch.arange(6).reshape(2, 3).t(),
            "array": np.arange(4, dtype=np.int16),
            "numpy scalar": np.float32(0.5),
        }

    value = launch(awkward, world_size=1).returns[0]
    assert value["float"] == [0.1, float("inf"), 0.0]
    assert str(value["float"][2]) == "-0.0"
    assert value["nan"] != value["nan"]
    assert value["sets"] == [{1, 2.5}, {"a"}, set()]
    assert (value["complex"], value["bytes"]) == (1 + 2j, b"\x00\xff")
    assert value[(1, "tuple key")] == (None, True, 2**80, "text")
    assert torch.equal(value["bfloat16"], torch.tensor([1.5], dtype=torch.bfloat16))
    assert torch.equal(value["complex128"], torch.tensor([1 + 2j], dtype=torch.complex128))
    assert (value["empty"].shape, value["scalar"].item()) == ((0, 3), 3)
    assert torch.equal(value["transposed"], torch.arange(6).reshape(2, 3).t())
    assert value["array"].dtype == np.int16
    assert value["numpy scalar"] == 0.5


def test_what_is_not_plain_is_refused_by_name():
    with pytest.raises(
        RankError, match=r"the returned value\['model'\]\[1\] is a torch.nn.modules.linear.Linear; a rank returns"
    ):
        launch(lambda: {"model": [1, torch.nn.Linear(2, 2)]}, world_size=1)


def test_a_file_that_is_no_result_is_refused(tmp_path):
    for content in (b"", b"{}", b"\x80\x04K\x01.", b"\xff" * 64):
        (tmp_path / "result").write_bytes(content)
        with pytest.raises(ValueError, match="does not hold plain data"):
            plain_data.load(tmp_path / "result")


def fail_on_rank_1():
    if dist.get_rank() == 1:
        print("about to fail")
        raise KeyError("gradient of layer 3")
    dist.all_reduce(torch.ones(1))


def test_the_first_failing_rank_comes_with_its_own_lines():
    with pytest.raises(RankError) as caught:
        launch(fail_on_rank_1, world_size=3)
    message = str(caught.value)
    assert caught.value.rank == 1
    assert message.startswith("rank 1 failed:\nTraceback")
    assert 'raise KeyError("gradient of layer 3")' in message
    assert "rank 1 had printed:\nabout to fail" in message
    assert "The other ranks (0, 2) were stopped because rank 1 failed." in message
    assert "ringzero/launch" not in message


ENDINGS = {
    "os._exit(0)": (lambda: os._exit(0), "rank 1 ended with exit status 0 before its function returned"),
    "os._exit(3)": (lambda: os._exit(3), "rank 1 ended with exit status 3 before its function returned"),
    "sys.exit": (lambda: sys.exit(0), "rank 1 failed:\n.*SystemExit"),
    "SIGKILL": (
        lambda: os.kill(os.getpid(), signal.SIGKILL),
        "rank 1 was ended by the signal SIGKILL before it returned",
    ),
    "segmentation fault": (
        lambda: __import__("ctypes").string_at(0),
        "signal SIGSEGV before it returned\n.*in string_at",
    ),
    "killing the warm rank": (
        lambda: (os.kill(os.getppid(), signal.SIGKILL), time.sleep(5)),
        "rank 1 was killed together with the process that watched over it",
    ),
}


def end_on_rank_1(how):
    if dist.get_rank() == 1:
        ENDINGS[how][0]()
    dist.all_reduce(torch.ones(1))


@pytest.mark.parametrize("how", ENDINGS)
def test_a_rank_that_leaves_early_is_named_and_the_next_call_works(how):
    launch(dist.get_rank, world_size=5)  # so that there are warm ranks which the call does not use
    with pytest.raises(RankError, match="(?s)" + ENDINGS[how][1]) as caught:
        launch(end_on_rank_1, how, world_size=3)
    assert caught.value.rank == 1
    assert launch(dist.get_rank, world_size=3).returns == [0, 1, 2]


class Pool:
    """Of two ranks: rank 0 is writing its stack when it is asked to, and rank 1 ends just then."""

    def __init__(self, directory):
        self.directory = directory

    def send(self, ranks, message):
        assert message == {"stack": True}

    def exits(self, timeout):
        (self.directory / "0.stack").write_text("rank 0\nwas here\n")
        return {1: 0, 2: 0}  # rank 2 is not of the call


def test_nobody_waits_for_the_stack_of_a_rank_that_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "STACK_SECONDS", 30.0)
    ended = set()
    running.ask_for_stacks(Pool(tmp_path), tmp_path, {0, 1}, ended)
    assert ended == {1}


def hang():
    if dist.get_rank() == 0:
        dist.all_reduce(torch.ones(1))  # nobody else comes


def test_a_deadlock_ends_at_once_and_says_where():
    """Long before its time is up: everybody who could answer has returned."""
    with pytest.raises(RankTimeout) as caught:
        launch(hang, world_size=3, timeout=300.0)
    message = str(caught.value)
    assert re.match(
        r"3 ranks were stuck for good, seen after \d+\.\d s: .*ranks 1, 2 never entered all_reduce #1; "
        r"rank 0 waits there, test_launch.py line \d+",
        message,
    )
    assert caught.value.deadlocked
    assert f'rank 0 was at\n  File "{__file__}", line {hang.__code__.co_firstlineno + 2} in hang' in message
    assert "rank 1 had returned\nrank 2 had returned" in message


def test_a_peer_that_does_not_exist_is_an_error_at_once():
    def beyond_the_last():
        dist.recv(torch.ones(1), dist.get_rank() + 1)

    with pytest.raises(RankError, match=r"(?s)beyond_the_last.*recv: there is no rank 2; the group's ranks are 0 to 1"):
        launch(beyond_the_last, world_size=2, timeout=300.0)


def test_a_hang_that_may_yet_end_gets_its_whole_time():
    def busy():
        if dist.get_rank() == 0:
            dist.all_reduce(torch.ones(1))
        while True:
            time.sleep(0.01)

    with pytest.raises(RankTimeout, match=r"^2 ranks were not done after 3 s: rank 1 never entered") as caught:
        launch(busy, timeout=3.0)
    assert not caught.value.deadlocked


def test_what_another_thread_may_still_send_is_no_deadlock():
    def answered_by_a_thread():
        ping, pong = torch.ones(3), torch.empty(3)
        if dist.get_rank() == 0:
            dist.recv(pong, 1)
            dist.send(pong, 1)
        else:
            threading.Thread(target=lambda: (time.sleep(2.5), dist.send(ping, 0))).start()
            dist.recv(pong, 0)
        return pong.sum().item()

    assert launch(answered_by_a_thread).returns == [3.0, 3.0]


def test_a_view_of_a_dict_and_a_range_come_back_as_lists():
    assert launch(lambda: ({3: 4}.keys(), {3: 4}.items(), range(2)), world_size=1).returns == [([3], [(3, 4)], [0, 1])]


def test_a_deadlock_in_the_backward_pass_of_torchs_ddp_ends_as_soon():
    """Its all-reduce is waited for in C++, where no record shows it."""

    def one_step_fewer():
        model = DistributedDataParallel(torch.nn.Linear(4, 4))
        for _ in range(3 - dist.get_rank()):
            model(torch.ones(2, 4)).sum().backward()

    def another_call():
        model = DistributedDataParallel(torch.nn.Linear(4, 4))
        dist.barrier() if dist.get_rank() else model(torch.ones(2, 4)).sum().backward()

    for job, why in (
        (one_step_fewer, r"rank 1 never entered all_reduce #\d; rank 0 waits there, .*; rank 1 had returned"),
        (another_call, r"the ranks disagree on collective #\d: rank 0 called all_reduce .*; rank 1 called barrier"),
    ):
        with pytest.raises(RankTimeout, match=f"^2 ranks were stuck for good, .*{why}") as caught:
            launch(job, timeout=300.0)
        assert caught.value.deadlocked


def test_a_backward_pass_at_work_is_no_deadlock():
    """One rank computes, or sleeps, in its backward pass; the other waits for it, and comes to the all-reduce later."""

    class Late(torch.autograd.Function):
        @staticmethod
        def forward(_, x, works):
            Late.works = works
            return x.clone()

        @staticmethod
        def backward(_, gradient):
            if dist.get_rank() == 0:
                late = time.monotonic() + 3.5
                while time.monotonic() < late:
                    sum(range(10**5)) if Late.works else time.sleep(3.5)
                dist.send(torch.ones(1), 1)
            return gradient, None

    def late(works):
        future = dist.all_reduce(torch.ones(3), async_op=True).get_future() if dist.get_rank() == 0 else None
        if future is None:
            dist.recv(torch.empty(1), 0)
            dist.all_reduce(torch.ones(3))
        Late.apply(torch.ones(4, requires_grad=True), works).sum().backward()
        return future is None or future.wait()[0].tolist()

    for works in (True, False):
        assert launch(late, works, timeout=60.0).returns == [[2.0, 2.0, 2.0], True]


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's variables")
def test_a_rank_keeps_the_memory_it_frees():
    """Pages that are given back and taken again would cost a fault for every 4 KiB, in each step."""

    def faults():
        import resource

        def step():
            _ = [torch.ones(2**20) for _ in range(8)]  # 32 MiB, freed at once
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

        for _ in range(16):  # until the heap has grown to what a step needs
            before = step()
        return step() - before

    pages = 8 * 2**22 / 4096
    assert max(launch(faults, world_size=2).returns) < pages / 2


def test_ranks_iterate_over_sets_as_separate_processes_do():
    """Programs whose order of collectives depends on a set hang on a real cluster, so they must show it here too."""
    seeds = launch(lambda: hash("a name"), world_size=4).returns
    if os.environ.get("PYTHONHASHSEED", "random") == "random":
        assert all(mine != neighbours for mine, neighbours in zip(seeds, seeds[1:], strict=False))


def test_a_slow_rank_is_no_hang():
    def slow():
        if dist.get_rank() == 1:
            time.sleep(1.6)
        dist.all_reduce(torch.ones(1))

    launch(slow)


def leftovers():
    """Processes of ranks, and temporary directories, of this test run."""
    mine = {os.getpid()}
    ranks = []
    for process in psutil.process_iter(["pid", "cmdline", "ppid"]):
        line = " ".join(process.info["cmdline"] or [])
        if str(pool_base()) in line or "orphan-of-ringzero" in line:
            ranks.append(process.info["pid"])
    return set(ranks) - mine, sorted(path.name for path in pool_base().glob("ringzero-*"))


def pool_base():
    return Path(tempfile.gettempdir())


@pytest.fixture
def own_tmp(tmp_path_factory, monkeypatch):
    """A temporary directory of our own, so that another test run beside this one is not counted."""
    tmp_path_factory.getbasetemp()  # pytest's own is made first, elsewhere
    directory = Path(tempfile.mkdtemp(prefix="rzt-"))
    monkeypatch.setenv("TMPDIR", str(directory))
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    pool.stop()
    yield directory
    pool.stop()
    wait_until(lambda: not list(directory.iterdir()))
    assert list(directory.iterdir()) == []
    directory.rmdir()


def wait_until(condition, seconds=300.0):  # far above any load; met within a second
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def start_a_daemon():
    script = "import os,sys,time; os.setsid(); sys.argv[1:]; time.sleep(600)"
    subprocess.Popen([sys.executable, "-c", script, "orphan-of-ringzero"], start_new_session=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", "orphan-of-ringzero"])
        os._exit(0)
    time.sleep(0.2)


def test_daemons_a_rank_started_are_ended_with_the_call(own_tmp):
    launch(start_a_daemon, world_size=2)
    warm = pool.acquire(2).own_processes()
    assert wait_until(lambda: leftovers()[0] <= warm), leftovers()


def test_nothing_is_left_after_stop(own_tmp):
    for function in (hang, fail_on_rank_1):
        with pytest.raises(RankError):
            launch(function, world_size=3, timeout=1.0)
    launch(everything, "x", 1, world_size=3)
    assert list(own_tmp.glob("*/call-*")) == []
    pool.stop()
    assert wait_until(lambda: leftovers() == (set(), [])), leftovers()
    assert list(own_tmp.iterdir()) == []


def heed_interrupts():
    """A process started in the background of a script ignores Ctrl-C; these tests are about one that does not."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_a_warm_rank_that_ended_between_calls_is_replaced():
    launch(dist.get_rank)
    rank = psutil.Process(pool.acquire(2).pids[1])
    rank.kill()
    psutil.wait_procs([rank], timeout=300)
    assert launch(dist.get_rank).returns == [0, 1]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_when_the_caller_is_killed(own_tmp, tmp_path, end):
    script = tmp_path / "caller.py"
    script.write_text(
        textwrap.dedent("""
        import time, torch, torch.distributed as dist
        from ringzero import launch
        def work():
            open("started", "w").close()
            time.sleep(600)
        launch(work, world_size=2, timeout=600)
        """)
    )
    command = [sys.executable, script]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, preexec_fn=heed_interrupts) as caller:
        try:
            assert wait_until((tmp_path / "started").exists)
            caller.send_signal(end)
            start = time.monotonic()
            caller.wait(300)
        finally:
            caller.kill()
    assert wait_until(lambda: leftovers() == (set(), [])), leftovers()
    print(f"gone {time.monotonic() - start:.2f} s after {end.name}")


def test_an_interrupt_ends_the_ranks_and_the_next_call_works(own_tmp):
    def forever():
        while True:
            time.sleep(0.01)

    launch(everything, "warm up", 1)
    before = signal.getsignal(signal.SIGINT)
    heed_interrupts()
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            launch(forever)
    finally:
        signal.signal(signal.SIGINT, before)
        timer.join()
    print(f"interrupt took {time.monotonic() - start - 0.5:.2f} s")
    assert wait_until(lambda: leftovers()[0] == set()), leftovers()
    assert launch(dist.get_rank).returns == [0, 1]


def one_of_each():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.ones(4)
    dist.broadcast(x, src=1)
    dist.reduce(x, dst=2)
    dist.all_reduce(x)
    parts = [torch.zeros(4) for _ in range(n)]
    dist.all_gather(parts, x)
    dist.gather(x, parts if rank == 0 else None, dst=0)
    dist.scatter(x, parts if rank == 0 else None, src=0)
    dist.reduce_scatter(x, [part.clone() for part in parts])
    dist.all_to_all(parts, [part.clone() for part in parts])
    dist.barrier()
    works = [dist.isend(x, (rank + 1) % n), dist.irecv(torch.zeros(4), (rank - 1) % n)]
    for work in works:
        work.wait()
    group = dist.new_group([0, 1])
    if rank < 2:
        dist.all_reduce(torch.ones(4, dtype=torch.float64), group=group)
    never_waited_for = dist.isend(x, (rank + 1) % n)
    dist.irecv(torch.zeros(4), (rank - 1) % n).wait()
    dist.barrier()  # torch cancels a send whose handle is dropped before it has left
    assert never_waited_for is not None


def test_the_trace_has_every_operation():
    trace = launch(one_of_each, world_size=3, trace=True).trace
    kinds = [
        "broadcast",
        "reduce",
        "all_reduce",
        "all_gather",
        "gather",
        "scatter",
        "reduce_scatter",
        "all_to_all",
        "barrier",
    ]
    for rank in range(3):
        mine = [op for op in trace if op.rank == rank]
        assert [op.sequence for op in mine] == list(range(len(mine)))
        extra = ["all_reduce"] if rank < 2 else []
        assert [op.kind for op in mine] == [*kinds, "send", "recv", *extra, "send", "recv", "barrier"]
        named = {op.kind: op for op in mine[:11]}
        assert (named["broadcast"].peer, named["reduce"].peer, named["scatter"].peer) == (1, 2, 0)
        assert (named["send"].peer, named["recv"].peer) == ((rank + 1) % 3, (rank - 1) % 3)
        assert named["all_reduce"].bytes == named["send"].bytes == 16
        assert (named["reduce_scatter"].bytes, named["barrier"].bytes) == (48, 0)
        assert all(op.start <= op.end for op in mine[:-3])
        assert mine[-3].end is None, "a send nobody waited for"
        if extra:
            assert mine[11].group != mine[0].group


def test_the_trace_is_written_for_perfetto(tmp_path):
    ranks = launch(one_of_each, world_size=3, trace=True)
    ranks.save_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    assert names == {0: "rank 0", 2: "rank 1", 4: "rank 2"}
    complete = [event for event in events if event["ph"] == "X"]
    assert len(complete) == len(ranks.trace)
    assert all(event["dur"] >= 0 and event["ts"] > 0 for event in complete)
    assert {event["args"].get("peer") for event in complete if event["name"] == "reduce"} == {2}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: launch(dist.get_rank, world_size=0), ValueError, "world_size is 0; give at least 1 rank"),
        (lambda: launch(dist.get_rank, world_size=-1), ValueError, "world_size is -1; give at least 1 rank"),
        (lambda: launch(dist.get_rank, world_size=2.0), TypeError, "world_size is 2.0; it is the number of ranks"),
        (lambda: launch(dist.get_rank, world_size=True), TypeError, "world_size is True"),
        (lambda: launch(None), TypeError, "launch takes a function to run on each rank, not None"),
        (lambda: launch(dist.get_rank, timeout=0), ValueError, "timeout is 0; give a positive number of seconds"),
        (lambda: launch(dist.get_rank, timeout="5"), ValueError, "timeout is '5'; give a positive number of seconds"),
        (lambda: launch(dist.get_rank, timeout=True), ValueError, "timeout is True; give a positive number of seconds"),
        (lambda: launch(dist.get_rank, timeout=float("nan")), ValueError, "timeout is nan; give a positive number"),
        (lambda: launch(dist.get_rank, timeout=float("inf")), ValueError, "timeout is inf; give a positive number"),
        (lambda: launch(dist.get_rank, device="tpu"), ValueError, 'device is \'tpu\'; it is "auto", "cpu"'),
        (lambda: launch(dist.get_rank, device="cuda:99"), ValueError, 'device="cuda:99" is not there: this'),
        (
            lambda: launch(dist.get_rank, world_size=torch.cuda.device_count() + 1, device="cuda"),
            ValueError,
            'device="cuda" needs a GPU for each of .* ranks and this machine has .*; use .*device="cpu"',
        ),
        (
            lambda: launch(lambda x: x, threading.Lock()),
            TypeError,
            "argument 0 is a _thread.lock, which cannot be pickled",
        ),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_variable_without_a_value_hides_no_other():
    def work():
        return later, captured

    captured = threading.Lock()
    with pytest.raises(TypeError, match="its captured variable 'captured' is a _thread.lock"):
        launch(work)
    later = None


def test_the_global_that_cannot_travel_is_named():
    captured = threading.Lock()

    def locks():
        return captured.locked()

    with pytest.raises(
        TypeError, match="cannot send locks to the ranks: its captured variable 'captured' is a _thread.lock"
    ):
        launch(locks)


NOTEBOOK = """
from ringzero import launch, RankError
import torch, torch.distributed as dist

---
scale = 3
def helper(x):
    if dist.get_rank() == 1:
        raise ValueError(f"cannot scale {x}")
    return x * scale

---
def work():
    return helper(7)
try:
    launch(work)
except RankError as error:
    print(error)
---
def hang():
    if dist.get_rank() == 0:
        dist.all_reduce(torch.ones(1))
try:
    launch(hang, timeout=1)
except RankError as error:
    print(error)
"""


def test_from_a_notebook_the_students_own_lines_are_shown():
    import nbformat
    from nbclient import NotebookClient

    cells = [nbformat.v4.new_code_cell(source.strip()) for source in NOTEBOOK.split("---")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=1200, kernel_name="python3").execute()
    failed, hung = notebook.cells[2].outputs[0].text, notebook.cells[3].outputs[0].text
    assert 'File "cell [3]", line 2, in work\n    return helper(7)' in failed
    assert 'File "cell [2]", line 4, in helper\n    raise ValueError(f"cannot scale {x}")' in failed
    assert "ValueError: cannot scale 7" in failed
    assert "rank 0 was at\n  File cell [4], line 3 in hang" in hung


def test_the_first_script_of_chapter_2_runs_without_this_library(tmp_path):
    """As torchrun starts it in a shell: every rank prints its number and the sum. It imports nothing but torch."""
    page = (Path(__file__).parents[2] / "book/02_collectives.md").read_text()
    script = re.search(r"%%writefile \S+/first_sum.py\n(.*?)```", page, re.DOTALL)[1]
    assert "ringzero" not in script
    (tmp_path / "first_sum.py").write_text(script)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3", "first_sum.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    said = re.findall(r"rank \d of 3 has \[9, 12\]", done.stdout)  # lines of ranks that print at once may mix
    assert sorted(said) == [f"rank {rank} of 3 has [9, 12]" for rank in range(3)]


def missing_imports(modules):
    """Of these modules, those that this rank's process would have to import."""
    return [module for module in modules if module not in sys.modules]


def test_new_ranks_have_what_calls_import(monkeypatch):
    """Of a fixed list, and what this process adds to it; for optimizers as soon as a job names them."""
    monkeypatch.setattr(pool, "imports", [*pool.imports, "ringzero_course.lab.on_rank"])

    def only_said(modules):
        """What an optimizer would need."""
        return missing_imports(modules)

    def with_optimizer(modules):
        torch.optim.SGD([torch.nn.Parameter(torch.ones(1))])
        return missing_imports(modules)

    pool.stop()
    try:
        wanted = ["cloudpickle", "ringzero.data_parallel", "ringzero_course.lab.on_rank", "torch._dynamo"]
        for without in (missing_imports, only_said):
            assert launch(without, wanted).returns == [["torch._dynamo"]] * 2
        assert launch(with_optimizer, ["torch._dynamo"], world_size=2).returns == [[], []]
        pids = pool.acquire(2).pids
        assert launch(missing_imports, wanted).returns == [[], []]
        assert pool.acquire(2).pids == pids
    finally:
        pool.stop()


LAB = """
import sys
from ringzero_course.lab import launch
def missing(modules):
    return [module for module in modules if module not in sys.modules]
print(launch(missing, ["ringzero_course.lab.on_rank", "ringzero_course.lab.subjects.sharding"], world_size=2).returns)
"""


def test_ranks_of_a_lab_begin_with_what_its_checks_run(tmp_path):
    """Else each rank imports it in each call, which made a check half as long again."""
    script = tmp_path / "lab.py"
    script.write_text(LAB)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "[[], []]\n", done.stderr


def test_a_call_has_the_threads_that_its_ranks_leave(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert launch(torch.get_num_threads, world_size=2).returns == [3, 3]
    assert launch(torch.get_num_threads, world_size=4).returns == [1, 1, 1, 1]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    pool.stop()
    assert launch(torch.get_num_threads, world_size=2).returns == [2, 2]
    pool.stop()


AGAIN = """
import os, torch, torch.distributed as dist
from ringzero import launch

def work():
    x = torch.ones(4)
    dist.all_reduce(x)
    return x[0].item()

if __name__ == "__main__":
    descriptors = []
    for i in range(6):
        ranks = launch(work, timeout=60, trace=True, device="strict" if i == 2 else "cpu")
        assert ranks.returns == [2.0, 2.0] and len(ranks.trace) == 2, ranks.trace
        descriptors.append(len(os.listdir("/proc/self/fd")))
    dist.init_process_group("gloo")  # the script's own
    for i in range(6):
        assert launch(work).returns == [2.0, 2.0]
        descriptors.append(len(os.listdir("/proc/self/fd")))
    for bad in ({"trace": True}, {"device": "strict"}):
        try:
            launch(work, **bad)
        except ValueError as error:
            assert "this script has called init_process_group; call launch before that" in str(error)
        else:
            raise AssertionError(bad)
    dist.destroy_process_group()
    assert launch(work).returns == [2.0, 2.0]
    grows = descriptors[3] < descriptors[5] or descriptors[6] < descriptors[-1]
    print(f"descriptors grow: {grows} {descriptors}", flush=True)
"""


def test_launch_again_and_again_under_torchrun(tmp_path):
    """On groups of its own, and on the script's. No connection of an earlier launch is left open."""
    (tmp_path / "again.py").write_text(AGAIN)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(tmp_path / "again.py")]
    done = subprocess.run(torchrun, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("descriptors grow: False") == 2, done.stdout
