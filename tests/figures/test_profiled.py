"""Traces of torch's profiler, real and generated: where the time went, on one clock, and the straggler by name."""

import gzip
import itertools
import json
import random
import re
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from click.testing import CliRunner

from ringzero import launch
from ringzero.cli import main
from ringzero.profiles import read, report
from ringzero.profiles.accounts import total
from ringzero.record import Operation, computing
from ringzero.record.export import save_chrome_trace
from ringzero.record.spans import both, length, union, without
from ringzero.zero import ZeroStage3
from tests.generated_profiles import Job, on_cpus, on_gpus, save

LATE = 0.05  # seconds that rank 1 of the real runs sleeps when rank 0 is in a collective already


# ---- traces that torch's profiler wrote here


def after_rank_0(path, enter, sleep=LATE):
    """Have rank 1 enter a collective ``sleep`` seconds or more after rank 0, however busy the machine is."""
    if dist.get_rank() == 0:
        work = enter()
        path.touch()
        return work
    while not path.exists():
        time.sleep(1e-3)
    time.sleep(sleep)
    return enter()


def ddp_steps(folder):
    """Four steps of torch's own DDP on plain gloo, the last two profiled; rank 1 is late in each."""
    rank, group, calls = dist.get_rank(), dist.new_group(backend="gloo"), itertools.count()
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)])
    replica = torch.nn.parallel.DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.5)

    def late(_, bucket):
        def enter():
            return dist.all_reduce(bucket.buffer(), group=group, async_op=True)

        sums = after_rank_0(Path(folder, f"call-{next(calls)}"), enter, LATE if bucket.index() == 0 else 0.0)
        return sums.get_future().then(lambda done: done.value()[0] / 2)

    replica.register_comm_hook(None, late)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    with torch.profiler.profile(schedule=schedule, record_shapes=True, acc_events=True) as profile:
        for _ in range(4):
            optimizer.zero_grad()
            replica(torch.ones(32, 256)).square().mean().backward()
            optimizer.step()
            profile.step()
    profile.export_chrome_trace(f"{folder}/rank{rank}.json.gz")


def zero_steps(folder):
    """A step of ZeroStage3 with the backend's own collectives, which run in threads of their own."""
    torch.manual_seed(0)
    layers = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(3)])
    model = ZeroStage3(layers, torch.optim.SGD, algorithm="backend", lr=0.1)

    def step():
        model.zero_grad()
        model(torch.ones(8, 64)).square().mean().backward()
        model.step()

    step()
    dist.barrier()
    threads = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    with torch.profiler.profile(experimental_config=threads) as profile:
        step()
    profile.export_chrome_trace(f"{folder}/rank{dist.get_rank()}.json")


@pytest.fixture(scope="module")
def ddp_traces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ddp")
    launch(ddp_steps, str(folder), world_size=2)
    return folder


def test_a_real_step_of_ddp(ddp_traces):
    found = report([ddp_traces])
    assert [profile.rank for profile in found.profiles] == [0, 1]
    for profile in found.profiles:
        sums = profile.communication
        assert len(profile.steps) == 2
        assert [op.kind for op in sums] == ["all_reduce"] * len(sums)
        assert sum(op.bytes for op in sums) == 2 * 4 * (4 * (256 * 256 + 256)), "every gradient, in each of two steps"
        assert {op.dtype for op in sums} == {"float32"}
        assert {op.kind for op in profile.operations} >= {"forward", "backward", "optimizer"}
    (straggler,) = [island.straggler for island in found.islands]
    assert (straggler.named, straggler.rank) == (True, 1)
    assert straggler.last_in == straggler.out_of
    on_time, late = (total(a for a in found.accounts if a.rank == rank) for rank in (0, 1))
    assert on_time.waited > late.waited
    assert late.idle >= 2 * LATE
    assert not any(clock.moved for clock in found.clocks), "one machine has one clock"


def test_a_real_step_of_zero_3(tmp_path):
    launch(zero_steps, str(tmp_path), world_size=2)
    found = report([tmp_path])
    (island,) = found.islands
    for profile in island.profiles:
        kinds = [op.kind for op in profile.communication]
        assert kinds.count("all_gather") == 6, "of three units, in the forward and again in the backward pass"
        assert kinds.count("all_reduce") == 3, "how gloo reduces gradients to shards"
        assert len(profile.meetings) == len(profile.communication)


def test_the_figure_shows_what_ranks_computed_and_sent(ddp_traces):
    (figure,) = report([ddp_traces]).figures()
    for said in ("rank 0", "rank 1", "backward", "all_reduce"):
        assert said in figure.html


# ---- generated ones: the straggler, the clocks


@pytest.mark.parametrize("make", [on_cpus, on_gpus])
def test_where_the_time_goes(make, tmp_path):
    job = Job(jitter=0.0, buckets=2, backward=20.0, forward=10.0, collective=3.0, slow={3: 1.5})
    found = report(save(make(job), tmp_path))
    on_time, slow = (total(a for a in found.accounts if a.rank == rank) for rank in (0, 3))
    each = {"abs": 2e-5 * job.steps}
    # Of rank 0 gradients are ready after 20 and 30 ms, of rank 3 after 30 and 45; sums end at 33 and 48, the step 49.
    assert on_time.computing == pytest.approx(job.steps * 31e-3, **each)
    assert on_time.waited == pytest.approx(job.steps * (10 + 15 - 3) * 1e-3, **each) or make is on_cpus
    assert on_time.moving == pytest.approx(job.steps * 6e-3, **each)
    assert on_time.exposed == pytest.approx(job.steps * 18e-3, **each)
    assert slow.computing == pytest.approx(job.steps * 46e-3, **each)
    assert slow.waited == pytest.approx(0.0, **each)
    assert slow.hidden == pytest.approx(job.steps * 3e-3, **each)
    assert (found.islands[0].straggler.rank, found.islands[0].straggler.last_in) == (3, 2 * job.steps)
    parts = {op.kind for op in found.profiles[0].operations if op.stream == "compute"}
    assert parts == {"forward", "backward", "optimizer"}


def test_the_parts_add_up(ddp_traces, tmp_path):
    profiles = [on_gpus(Job(late={1: 4.0}, seed=5)), on_cpus(Job(slow={0: 1.2}, seed=6))]
    for number, traces in enumerate(profiles):
        (tmp_path / str(number)).mkdir()
        save(traces, tmp_path / str(number))
    for folder in (ddp_traces, tmp_path / "0", tmp_path / "1"):
        found = report([folder])
        for account in found.accounts:
            profile = next(p for p in found.profiles if p.rank == account.rank)
            inside = [profile.steps[account.step]]
            communicating = length(both(union((op.start, op.last) for op in profile.communication), inside))
            assert account.waited + account.moving == pytest.approx(communicating, abs=1e-9)
            assert account.exposed + account.hidden == pytest.approx(communicating, abs=1e-9)
            assert account.computing + account.exposed + account.idle == pytest.approx(account.seconds, abs=1e-9)
            assert min(account[2:]) >= -1e-9


def random_job(seed, straggles):
    chance = random.Random(seed)
    job = Job(seed=seed, jitter=chance.choice([0.01, 0.03, 0.1]), buckets=chance.randint(1, 5))
    job.forward, job.backward = chance.uniform(2, 20), chance.uniform(4, 40)
    job.collective = chance.uniform(0.2, 20)
    if chance.random() < 0.7:
        job.ahead = {rank: chance.uniform(-5, 5) for rank in range(job.ranks)}
        job.drift = {rank: chance.uniform(-50e-6, 50e-6) for rank in range(job.ranks)}
    rank, how = chance.randrange(job.ranks), chance.choice(["slow", "late"])
    if straggles and how == "slow":
        job.slow = {rank: chance.uniform(1.3, 2.0)}
    elif straggles:
        job.late = {rank: chance.uniform(0.25, 1.0) * (job.forward + job.backward)}
    return job, rank, {"slow": "It computes longer", "late": "It starts later"}[how]


def test_an_injected_straggler_is_named(tmp_path):
    right, reasons = 0, 0
    for seed in range(20):
        job, rank, why = random_job(seed, straggles=True)
        (tmp_path / str(seed)).mkdir()
        make = on_gpus if seed % 2 else on_cpus
        (island,) = report(save(make(job), tmp_path / str(seed))).islands
        right += island.straggler.named and island.straggler.rank == rank
        reasons += island.straggler.why.startswith(why)
    assert right >= 19
    assert reasons >= 19


def test_no_straggler_is_named_where_there_is_none(tmp_path):
    for seed in range(20):
        job, *_ = random_job(seed, straggles=False)
        job.jitter = min(job.jitter, 0.03)
        (tmp_path / str(seed)).mkdir()
        (island,) = report(save((on_gpus, on_cpus)[seed % 2](job), tmp_path / str(seed))).islands
        assert not island.straggler.named, seed


def test_clocks_are_put_on_one(tmp_path):
    for seed in range(10):
        chance = random.Random(seed)
        ahead = {rank: chance.uniform(-1000, 1000) for rank in range(4)}
        job = Job(seed=seed, jitter=0.5, steps=6, ahead=ahead, slow={seed % 4: 1.5})
        (tmp_path / str(seed)).mkdir()
        for clock in report(save(on_gpus(job), tmp_path / str(seed))).clocks:
            error = abs(clock.offset - (ahead[clock.rank] - ahead[0]))
            assert clock.moved
            assert error < 0.5e-3, "ranks leave a collective within 0.5 ms"
            assert error <= clock.apart


def test_a_drift_is_found(tmp_path):
    job = Job(steps=60, jitter=0.1, ahead={1: 3.0}, drift={1: 400e-6, 2: -300e-6})
    found = report(save(on_cpus(job), tmp_path))
    clocks = {clock.rank: clock for clock in found.clocks}
    assert clocks[1].drift == pytest.approx(400e-6, rel=0.1)
    assert clocks[2].drift == pytest.approx(-300e-6, rel=0.1)
    assert clocks[3].drift == 0.0
    last = [max(op.last for op in profile.communication) for profile in found.profiles]
    assert max(last) - min(last) < 0.15e-3, "without it 0.8 ms at the end"


def test_the_figure_is_on_one_clock(tmp_path):
    found = report(save(on_gpus(Job(ahead={2: 40.0})), tmp_path))
    assert max(op.last for profile in found.profiles for op in profile.operations) < 1.0
    (figure,) = found.figures(step=8)
    assert 30 < float(re.search(r"in (\S+) ms", figure.alt)[1]) < 40, "one step, on all ranks at once"


def test_short_gaps_are_drawn_as_the_share_that_is_computed(tmp_path):
    """A GPU that a slow host keeps busy a fifth of the time, 5 us in 25."""
    traces = on_gpus(Job(ranks=2, steps=1))
    kernel = next(e for e in traces[0]["traceEvents"] if e["name"] == "ampere_sgemm_128x64_forward")
    traces[0]["traceEvents"].remove(kernel)
    traces[0]["traceEvents"] += [{**kernel, "ts": kernel["ts"] + 25 * n, "dur": 5} for n in range(400)]
    (figure,) = report(save(traces, tmp_path)).figures()
    blue = re.findall(r'class="busy" fill="#0072b2"[^>]* width="([\d.]+)" x="([\d.]+)"', figure.html)
    of_rank_0 = [(float(x), float(width)) for width, x in blue][: len(blue) - 1]
    drawn = sum(width for _, width in of_rank_0) / (of_rank_0[-1][0] - of_rank_0[0][0])
    assert len(of_rank_0) > 20
    assert drawn == pytest.approx(0.2, abs=0.03)
    assert "Stripes" in figure.html


# ---- what NCCL's events say


def with_arguments(traces, change):
    for trace in traces:
        for event in trace["traceEvents"]:
            change(event, event["args"])
    return traces


def test_collectives_meet_by_the_numbers_of_nccl(tmp_path):
    """Rank 1's profile began a step later than the others', and nobody called profile.step()."""
    traces = on_gpus(Job(steps=5, slow={2: 1.3}))
    for rank, trace in enumerate(traces):
        for number, event in enumerate(e for e in trace["traceEvents"] if e["name"].startswith("nccl")):
            event["args"]["Seq"] = 40 + number
        ends = {e["args"]["Seq"]: e["ts"] + e["dur"] for e in trace["traceEvents"] if "Seq" in e["args"]}
        begin, end = (ends[42], ends[54]) if rank == 1 else (0.0, ends[51])
        kept = [e for e in trace["traceEvents"] if begin < e["ts"] < end and "ProfilerStep" not in e["name"]]
        trace["traceEvents"] = kept
    found = report(save(traces, tmp_path))
    assert {clock.rank: clock.common for clock in found.clocks} == {1: 9, 2: 12, 3: 12}
    assert abs(found.clocks[0].offset) < 1e-3
    assert not any("it is that and not the clocks" in said for said in found.sentences())
    assert found.islands[0].straggler.rank == 2

    with_arguments(traces, lambda event, args: args.pop("Seq", None))
    unnumbered = report(save(traces, tmp_path))
    assert abs(unnumbered.clocks[0].offset) > 30e-3, "the step that rank 1 lacks looks like a clock that is off"
    assert any("it is that and not the clocks" in said for said in unnumbered.sentences())


def test_what_kernels_of_nccl_are_called(tmp_path):
    """An all-to-all is a kernel called SendRecv; a long list of ranks is cut; bfloat16 has two bytes."""
    traces = on_gpus(Job(ranks=2))

    def old(event, args):
        if event["name"].startswith("nccl"):
            event["name"] = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)"
            event["args"] = {name: args[name] for name in ("correlation", "stream")}
        if event["name"] == "record_param_comms":
            event.update(name="nccl:all_to_all", cat="user_annotation", args={})

    def new(event, args):
        if event["name"].startswith("nccl"):
            event["name"] = "ncclSymkDevKernel_ReduceScatter_LL_sum_bf16(ncclSymkDevWorkArgs4K)"
            args.update({"Collective name": "_reduce_scatter_base", "dtype": "BFloat16"})
            args["Process Group Ranks"] = "[0, ...]"

    first = read(save(with_arguments(traces, old), tmp_path))[0]
    assert {op.kind for op in first.communication} == {"all_to_all"}
    first = read(save(with_arguments(on_gpus(Job(ranks=2)), new), tmp_path))[0]
    assert {op.kind for op in first.communication} == {"reduce_scatter"}
    assert first.communication[0].bytes == 2 * 1000
    assert first.communication[0].members == (0, 1), "from distributedInfo"


def test_messages_of_nccl_meet_by_their_peers(tmp_path):
    """Rank 0 sends to rank 1, which is late; as pipelines do."""
    traces = on_gpus(Job(ranks=2, slow={1: 1.5}))
    for rank, trace in enumerate(traces):
        about = {"Collective name": "recv", "Src Rank": 0} if rank else {"Collective name": "send", "Dst Rank": 1}
        with_arguments([trace], lambda event, args, a=about: args.update(a) if "Collective name" in args else None)
    found = report(save(traces, tmp_path))
    assert [{op.kind for op in profile.communication} for profile in found.profiles] == [{"send"}, {"recv"}]
    assert not found.clocks, "a message does not tell when both leave"
    read_as_one = read(tmp_path / name for name in ("worker0.pt.trace.json", "worker1.pt.trace.json"))
    assert read_as_one[0].meetings.keys() == read_as_one[1].meetings.keys()
    assert len(read_as_one[0].meetings) == 12


def test_sizes_and_groups_of_gloo_come_from_record_param_comms_where_it_is(tmp_path):
    traces = on_cpus(Job(ranks=2))
    for trace in traces:
        for event in [e for e in trace["traceEvents"] if e["name"] == "gloo:all_reduce"]:
            about = {"In msg nelems": 77, "dtype": "Half", "Process Group Name": "dp", "Process Group Ranks": "[0, 1]"}
            trace["traceEvents"].append({**event, "name": "record_param_comms", "cat": "cpu_op", "args": about})
    first = read(save(traces, tmp_path))[0]
    assert len(first.communication) == 12
    assert {(op.bytes, op.dtype, op.group, op.members) for op in first.communication} == {
        (154, "float16", "dp", (0, 1))
    }
    plain = read(save(on_cpus(Job(ranks=2)), tmp_path))[0]
    assert [op.bytes for op in plain.communication[:3]] == [4000, 4004, 4008]


def test_nccl_without_kernels_is_said(tmp_path):
    def host_only(event, args):
        if event["name"] == "record_param_comms":
            event.update(name="nccl:all_reduce", cat="user_annotation")
        if event.get("cat") == "kernel":
            event["cat"] = "dropped"

    found = report(save(with_arguments(on_gpus(Job(ranks=2)), host_only), tmp_path))
    assert any("ProfilerActivity.CUDA" in said for said in found.sentences())
    assert not found.profiles[0].communication


# ---- our own records


def two_steps(folder):
    """Two steps of a program that says what it computes: a sum, then a message; rank 1 is late for each."""
    x, dst = torch.ones(1000), 1 - dist.get_rank()
    for step in range(2):
        with computing("forward"):
            time.sleep(0.001)
        after_rank_0(Path(folder, f"sum-{step}"), lambda: dist.all_reduce(x, async_op=True)).wait()
        with computing("backward"):
            time.sleep(0.001)
        act = dist.irecv if dst == 0 else dist.isend
        after_rank_0(Path(folder, f"message-{step}"), lambda act=act: act(x, dst)).wait()


def test_our_own_records_are_read_too(tmp_path):
    ranks = launch(two_steps, str(tmp_path), world_size=2, trace=True)
    ranks.save_chrome_trace(tmp_path / "trace.json")
    recorded, exported = report(ranks.trace), report([tmp_path / "trace.json"])
    assert recorded.islands[0].straggler.rank == 1
    assert recorded.islands[0].straggler.named
    assert (recorded.islands[0].straggler.last_in, recorded.islands[0].straggler.out_of) == (4, 4)
    for one, other in zip(recorded.accounts, exported.accounts, strict=True):
        assert one == pytest.approx(other, abs=2e-6)
    without_numbers = [re.sub(r"[\d.]+", "#", " ".join(found.sentences())) for found in (recorded, exported)]
    assert without_numbers[0] == without_numbers[1]
    first = total(a for a in recorded.accounts if a.rank == 0)
    assert first.waited >= 4 * LATE
    assert first.computing + first.exposed + first.idle == pytest.approx(first.seconds)


# ---- bad input


def test_a_trace_that_is_cut_short_keeps_what_is_whole(tmp_path):
    traces = on_cpus(Job(ranks=2, slow={1: 1.5}))
    whole, cut = save(traces, tmp_path)
    text = cut.read_bytes()
    cut.write_bytes(text[: len(text) * 2 // 3])
    found = report([whole, cut])
    assert any(f"{cut} is cut short: its first " in said for said in found.sentences())
    assert 0 < len(found.profiles[1].operations) < len(found.profiles[0].operations)
    assert found.islands[0].straggler.rank == 1
    packed = tmp_path / "rank1.json.gz"
    squeezed = gzip.compress(text)
    packed.write_bytes(squeezed[: len(squeezed) // 2])
    assert any("is cut short" in said for said in report([whole, packed]).sentences())


def bad_files(folder):
    """``{name: (files, what is said)}``."""
    good, other = save(on_cpus(Job(ranks=2)), folder)

    def file(name, content):
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    trace = json.loads(good.read_text())
    foreign = {"traceEvents": [{"ph": "X", "name": "a", "cat": "toplevel", "ts": 1, "dur": 2, "args": {}}]}
    nothing = {**trace, "traceEvents": [e for e in trace["traceEvents"] if e["ph"] == "M"]}
    empty = folder / "empty"
    empty.mkdir()
    return {
        "no file": ([folder / "none.json"], "none.json is not there"),
        "a folder without any": ([empty], "holds no file ending in .json"),
        "empty": ([file("e.json", "")], "e.json is empty"),
        "a picture": (
            [file("p.json", b"\x89PNG\r\n\x1a\n\xff\xfe" + b"\xff" * 100)],
            "p.json is no trace: it is no text",
        ),
        "a page": ([file("h.json", "<html>no</html>")], "it is no JSON .* it begins with '<html>"),
        "other JSON": ([file("j.json", '{"a": 1}')], "j.json is JSON, but no trace"),
        "without events": ([file("n.json", json.dumps(nothing))], "n.json is a trace without any event"),
        "cut before any": (
            [file("c.json", '{"traceEvents": [{"ph": "X", "na')],
            "c.json is cut short before its first",
        ),
        "of another program": ([file("f.json", json.dumps(foreign))], "neither torch's profiler nor ringzero wrote it"),
        "twice": ([good, good], "is given twice"),
        "one rank twice": ([good, file("again.json", good.read_text())], "are both of rank 0"),
    }


BAD = [
    "no file", "a folder without any", "empty", "a picture", "a page", "other JSON", "without events", "cut before any",
    "of another program", "twice", "one rank twice",
]  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_trace_is_refused_by_name(what, tmp_path):
    files, said = bad_files(tmp_path)[what]
    with pytest.raises(ValueError, match=said):
        report(files)
    done = CliRunner().invoke(main, ["timeline", *map(str, files)])
    assert done.exit_code == 1
    assert done.output.startswith("Error: ")


def test_ranks_by_the_names_of_files_or_by_their_places(tmp_path):
    """Chrome's format may be a list of events alone, and says no rank."""
    lists = [trace["traceEvents"] for trace in on_cpus(Job(ranks=2, slow={1: 1.5}))]
    for name, events in zip(("rank-1.json", "rank-0.json"), reversed(lists), strict=True):
        (tmp_path / name).write_text(json.dumps(events))
    found = report([tmp_path])
    assert [(p.rank, p.file) for p in found.profiles] == [(r, str(tmp_path / f"rank-{r}.json")) for r in (0, 1)]
    assert found.islands[0].straggler.rank == 1
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    (tmp_path / "rank-0.json").rename(a)
    (tmp_path / "rank-1.json").rename(b)
    assert f"{b} does not say its rank; by its place among the files it counts as rank 1" in report([a, b]).sentences()


def test_kinds_of_traces_are_not_mixed(tmp_path):
    theirs = save(on_cpus(Job(ranks=2)), tmp_path)[0]
    ours = [tmp_path / "ours.json", tmp_path / "more.json"]
    for path in ours:
        save_chrome_trace([Operation("barrier", 0, 1.0, end=2.0)], path)
    with pytest.raises(ValueError, match="ours.json is a trace of ringzero's, .* of torch's profiler; give one kind"):
        report([ours[0], theirs])
    with pytest.raises(ValueError, match="ours.json has all ranks of its call; give it alone, without .*more.json"):
        report(ours)
    with pytest.raises(ValueError, match="no trace is given"):
        report([])


def test_missing_ranks_and_silent_ones_are_said(tmp_path):
    traces = on_gpus(Job(slow={3: 1.5}))
    found = report(save(traces[:2], tmp_path))
    assert "Of 4 ranks, no trace of ranks 2 and 3: what is waited for them counts as moving." in found.sentences()
    for trace in traces:
        trace["traceEvents"] = [e for e in trace["traceEvents"] if "Collective name" not in e["args"]]
    found = report(save(traces, tmp_path))
    assert any(said.startswith("No communication in the trace of ranks 0 to 3") for said in found.sentences())
    assert [island.straggler for island in found.islands] == 4 * [None]
    assert found.accounts[0].computing > 0


def test_ranks_that_no_collective_joins_are_read_alone(tmp_path):
    """Two groups of two ranks, whose clocks are hours apart."""
    traces = on_gpus(Job(ahead={2: 9000.0, 3: 9000.0}, slow={1: 1.4}))
    for rank, trace in enumerate(traces):
        members = {"Process Group Name": str(rank // 2), "Process Group Ranks": ["[0, 1]", "[2, 3]"][rank // 2]}
        with_arguments([trace], lambda event, args, m=members: args.update(m) if "Collective name" in args else None)
    found = report(save(traces, tmp_path))
    assert [[profile.rank for profile in island.profiles] for island in found.islands] == [[0, 1], [2, 3]]
    said = " ".join(found.sentences())
    assert "No collective joins these: ranks 0 and 1; ranks 2 and 3." in said
    assert "Among ranks 0 and 1: Straggler: rank 1." in said
    assert len(found.figures()) == 2


def test_collectives_that_fit_no_clock_are_said(tmp_path):
    """Of one step rank 1's first sum is missing and rank 0's last, so what seems to be one is not."""
    traces = on_gpus(Job(ranks=2, buckets=3, backward=60.0))
    for trace, missing in zip(traces, (5, 3), strict=True):
        trace["traceEvents"].remove([e for e in trace["traceEvents"] if e["name"].startswith("nccl")][missing])
    found = report(save(traces, tmp_path))
    assert any("on no clock do these fit" in said for said in found.sentences())
    assert len(found.islands) == 2


def test_a_step_with_a_sum_missing_is_left_out(tmp_path):
    traces = on_gpus(Job(ranks=2, slow={1: 1.5}))
    traces[1]["traceEvents"].remove([e for e in traces[1]["traceEvents"] if e["name"].startswith("nccl")][3])
    found = report(save(traces, tmp_path))
    assert (found.clocks[0].common, found.islands[0].straggler.rank) == (9, 1)
    assert any("3 of rank 0's 12 communications (all_reduce) have no counterpart" in said for said in found.sentences())


def test_a_step_that_is_not_there(tmp_path):
    found = report(save(on_gpus(Job()), tmp_path))
    with pytest.raises(ValueError, match="step is 3; the traces have 7, 8, 9, 10"):
        found.figures(step=3)


# ---- the command


def test_the_command(tmp_path):
    save(on_gpus(Job(slow={2: 1.4}, ahead={1: 2.5})), tmp_path, compressed=True)
    page, picture, numbers = (str(tmp_path / name) for name in ("t.html", "t.svg", "numbers"))
    options = ["--html", page, "--svg", picture, "--json", numbers, "--step", "9"]
    done = CliRunner().invoke(main, ["timeline", str(tmp_path), *options])
    assert done.exit_code == 0, done.output
    assert "Straggler: rank 2" in done.output
    assert re.search(r"Rank 1's clock is 2\.(500|499)\d* s ahead of rank 0's", done.output)
    html = (tmp_path / "t.html").read_text()
    assert html.count("<svg") == 1
    assert "src=" not in html
    assert "href=" not in html
    assert (tmp_path / "t.svg").read_text().startswith("<svg")
    said = json.loads((tmp_path / "numbers").read_text())
    assert len(said["accounts"]) == 4 * 4
    assert said["stragglers"][0]["rank"] == 2
    printed = CliRunner().invoke(main, ["timeline", str(tmp_path), "--json", "-"])
    assert json.loads(printed.output) == said


def test_an_exported_trace_of_nothing_is_no_trace(tmp_path):
    save_chrome_trace([], tmp_path / "none.json")
    with pytest.raises(ValueError, match="without any event"):
        report([tmp_path / "none.json"])


# ---- stretches of time


def test_spans_against_a_count_of_milliseconds():
    chance = random.Random(0)
    for _ in range(200):
        some = [
            union((a, a + chance.randint(1, 5)) for a in (chance.randrange(30) for _ in range(chance.randint(0, 6))))
            for _ in range(2)
        ]
        one, other = ({t for begin, end in spans for t in range(begin, end)} for spans in some)
        assert length(both(*some)) == len(one & other)
        assert length(without(*some)) == len(one - other)
        assert length(union([*some[0], *some[1]])) == len(one | other)
