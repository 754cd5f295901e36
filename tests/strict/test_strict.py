"""``device="strict"``: NCCL's rules on the CPU. What is wrong there is named with its line, what is right runs.

The programs that are wrong are in ``only_on_gloo``, random ones that are right in ``tests.fuzz.on_streams``.
"""

import functools
import inspect
import re
import threading
import time

import pytest
import torch
import torch.distributed as dist

import ringzero.collectives as collectives
from ringzero import RankError, launch
from ringzero.collectives import run
from ringzero.data_parallel import DistributedDataParallel, FlatDataParallel, NaiveDataParallel, executor, travel
from ringzero.explain.queues import Queues, another_order
from ringzero.record import Operation
from ringzero.strict.pending import Pending
from ringzero.zero import ZeroStage1, ZeroStage2, ZeroStage3
from tests import only_on_gloo
from tests.fuzz.on_streams import play


@pytest.fixture
def seeds(request):
    """Of strict's delays. ``pytest tests/strict/test_strict.py --seeds 50`` takes an hour."""
    return range(1, 1 + request.config.getoption("seeds"))


@pytest.mark.parametrize("program", only_on_gloo.PROGRAMS, ids=lambda program: program.__name__)
def test_what_only_gloo_forgives_is_named_with_its_line(program):
    assert all(torch.is_tensor(value) for value in launch(program, world_size=3, device="cpu").returns)
    with pytest.raises(RankError) as caught:
        launch(program, world_size=3, device="strict")
    assert f"only_on_gloo.py line {only_on_gloo.wrong_line(program)}" in str(caught.value).replace('", line', " line")


def test_there_are_thirty_programs_or_more():
    assert len(only_on_gloo.PROGRAMS) >= 30


@pytest.mark.parametrize("world_size", [5, 4, 3, 2, 1])
def test_right_programs_give_the_bits_of_gloo(world_size, seeds):
    """200 in all, with seeds of strict's own; whole numbers, so the order of sums changes nothing."""
    programs = list(range(40))
    expected = launch(play, programs, world_size=world_size, device="cpu").returns
    for seed in seeds:
        found = launch(play, programs, world_size=world_size, device=f"strict:{seed}").returns
        for mine, theirs in zip(found, expected, strict=True):
            for number, (a, b) in enumerate(zip(mine, theirs, strict=True)):
                assert torch.equal(a, b), (seed, number)


def every_algorithm(sizes):
    rank, found = dist.get_rank(), {}
    for numel in sizes:
        for collective, algorithms in collectives.ALGORITHMS.items():
            for name in algorithms:
                x = torch.arange(numel, device="cpu").float() + 100 * rank
                try:
                    if collective == "barrier":
                        collectives.barrier(algorithm=name)
                        continue
                    if collective == "all_to_all":
                        value = collectives.all_to_all(torch.empty(numel, device="cpu"), x, algorithm=name)
                    else:
                        value = getattr(collectives, collective)(x, algorithm=name)
                except ValueError as error:  # a size or number of ranks that the algorithm does not take
                    value = re.sub(r"\d+", "", str(error))
                if collective not in ("reduce", "gather") or rank == 0:  # other ranks' buffers hold anything
                    found[collective, name, numel] = value
    return found


@pytest.mark.parametrize("world_size", [5, 4, 3, 2, 1])
def test_every_algorithm_of_every_collective(world_size, seeds):
    expected = launch(every_algorithm, (0, 1, 7, 60), world_size=world_size, device="cpu").returns
    for seed in seeds:
        found = launch(every_algorithm, (0, 1, 7, 60), world_size=world_size, device=f"strict:{seed}").returns
        for mine, theirs in zip(found, expected, strict=True):
            assert mine.keys() == theirs.keys()
            assert len(theirs) > 100
            for what, value in theirs.items():
                assert torch.equal(mine[what], value) if torch.is_tensor(value) else mine[what] == value, what


def with_another_default_device():
    torch.set_default_device("meta")  # what the library makes for itself must not land there
    return every_algorithm((7,))


def test_nothing_lands_on_the_default_device():
    for device in ("cpu", "strict"):
        found = launch(with_another_default_device, world_size=3, device=device).returns
        assert all(
            value.device.type == "cpu" for of_rank in found for value in of_rank.values() if torch.is_tensor(value)
        )


WRAPPED = {
    "naive": NaiveDataParallel,
    "flat": FlatDataParallel,
    "ddp": lambda net: DistributedDataParallel(net, bucket_cap_mb=0.002),
    "ddp by ring": lambda net: DistributedDataParallel(net, bucket_cap_mb=0.002, algorithm="ring"),
    "unused": lambda net: DistributedDataParallel(net, bucket_cap_mb=0.002, algorithm="ring", find_unused=True),
    "zero 1": lambda net: ZeroStage1(net, torch.optim.AdamW, bucket_cap_mb=0.002),
    "zero 2": lambda net: ZeroStage2(net, torch.optim.AdamW, bucket_cap_mb=0.002),
    "zero 3": lambda net: ZeroStage3(net, torch.optim.AdamW),
    "zero 1, ring": lambda net: ZeroStage1(net, torch.optim.AdamW, bucket_cap_mb=0.002, algorithm="ring"),
    "zero 3, ring": lambda net: ZeroStage3(net, torch.optim.AdamW, algorithm="ring"),
}


def train(name, device="cpu"):
    """The state after three steps on batches that differ by rank; all random numbers are drawn on the CPU."""
    torch.manual_seed(0)
    with torch.device("cpu"):
        net = torch.nn.Sequential(*[torch.nn.Linear(17, 17, dtype=torch.float64) for _ in range(5)]).to(device)
    wrapped = WRAPPED[name](net)
    sharded = hasattr(wrapped, "step")
    optimizer = wrapped if sharded else torch.optim.AdamW(net.parameters())
    inputs = torch.Generator("cpu").manual_seed(dist.get_rank())
    for _ in range(3):
        x = torch.randn(4, 17, dtype=torch.float64, generator=inputs, device="cpu")
        wrapped(x.to(device)).square().mean().backward()
        if sharded:
            wrapped.clip_grad_norm_(0.1)
        optimizer.step()
        optimizer.zero_grad()
    return {name: value.detach().clone() for name, value in wrapped.state_dict().items()}


@pytest.mark.parametrize("name", WRAPPED)
def test_data_parallelism_and_zero(name, seeds):
    """Up to rounding as on gloo, which sums in another order; bitwise the same whatever the delays."""
    for world_size in (5, 4, 3, 2, 1) if len(seeds) > 1 else (4, 3):
        expected = launch(train, name, world_size=world_size, device="cpu").returns[0]
        first, *others = (
            launch(train, name, world_size=world_size, device=f"strict:{seed}").returns[0] for seed in (0, *seeds)
        )
        torch.testing.assert_close(first, expected, rtol=1e-12, atol=1e-14)
        assert all(torch.equal(other[key], first[key]) for other in others for key in first)


def communicating_threads():
    import threading

    before = threading.active_count()
    train("zero 3")
    return threading.active_count() - before


def new_memory_of_the_same_size():
    """Rank 0's message is still on its way when its tensor gets other memory; then that is overwritten by others."""
    x = torch.arange(16.0)
    if dist.get_rank():
        time.sleep(0.2)
        dist.recv(x.zero_(), 0)
        return x
    dist.isend(x, 1).wait()
    time.sleep(0.05)  # it has begun
    x.untyped_storage().resize_(x.nbytes)
    _others = [torch.full((16,), -1.0) for _ in range(100)]
    return x


def test_memory_may_move_under_a_message_that_the_stream_has_waited_for():
    for seed in range(4):  # with some the message is read only when it goes
        for x in launch(new_memory_of_the_same_size, world_size=2, device=f"strict:{seed}").returns:
            assert x.tolist() == list(range(16))


def with_a_stream_recorded():
    streams, x = torch.cpu, torch.ones(4)
    side = streams.Stream()
    side.wait_stream(streams.current_stream())
    with streams.stream(side):
        doubled = x * 2
    x.record_stream(side)
    del x
    others = torch.zeros(4)
    streams.current_stream().wait_stream(side)
    return doubled + others


def test_memory_goes_back_when_recorded_streams_have_come_so_far():
    for value in launch(with_a_stream_recorded, world_size=2, device="strict").returns:
        assert value.tolist() == [2, 2, 2, 2]


def test_no_thread_of_ours_communicates_where_streams_do():
    assert launch(communicating_threads, world_size=2, device="strict").returns == [0, 0]
    assert min(launch(communicating_threads, world_size=2, device="cpu").returns) > 0


def two_threads_in_turns():
    """In the same order on all ranks, as it happens."""
    issued, over = threading.Event(), threading.Event()

    def in_a_thread():
        dist.all_reduce(torch.ones(2))
        issued.set()
        over.wait()

    dist.all_reduce(torch.ones(2))
    thread = threading.Thread(target=in_a_thread)
    thread.start()
    issued.wait()
    try:
        dist.all_reduce(torch.ones(2))
    finally:
        over.set()
        thread.join()


def test_two_threads_do_not_share_a_communicator():
    with pytest.raises(RankError, match="two threads use one communicator"):
        launch(two_threads_in_turns, world_size=2, device="strict")


def a_stream_per_step():
    """What strict knows after so many steps: clocks, and uses of a tensor that lives on."""
    from ringzero.strict import streams, watching

    weight, known = torch.ones(4), []
    for step in range(1200):
        stream = torch.cpu.Stream()
        stream.wait_stream(torch.cpu.current_stream())
        with torch.cpu.stream(stream):
            result = weight * 2
        torch.cpu.current_stream().wait_stream(stream)
        result.sum()
        result.record_stream(torch.cpu.current_stream())
        if step in (599, 1199):
            uses = watching.memory._known(weight).uses
            known.append((len(uses), max(len(clock) for clock in (streams._host, streams.DEFAULT.clock))))
    return known


def test_streams_that_are_gone_are_forgotten():
    ((uses, clock), (uses_later, clock_later)) = launch(a_stream_per_step, world_size=1, device="strict").returns[0]
    assert uses_later <= uses <= 4
    assert max(clock, clock_later) <= 500


def threads_with_streams():
    from threading import Thread

    shared, failed = torch.ones(1000), []

    def work():
        try:
            for _ in range(150):
                stream = torch.cpu.Stream()
                stream.wait_stream(torch.cpu.current_stream())
                with torch.cpu.stream(stream):
                    (shared * 2).sum().item()
                torch.cpu.synchronize()
        except Exception as error:
            failed.append(repr(error))

    threads = [Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed


def test_threads_have_streams_side_by_side():
    assert launch(threads_with_streams, world_size=1, device="strict", timeout=60).returns == [[]]


def test_a_thread_that_waits_second_sees_the_result_too():
    """The first one is still copying the result to where the program sees it."""
    copying, go_on = threading.Event(), threading.Event()

    class Slow:
        def copy_(self, result):
            copying.set()
            go_on.wait(60)
            seen.append("copied")

    seen: list[str] = []
    pending = Pending("all_reduce", "", [], [], lambda inputs: None)
    pending.outputs, pending.results = [Slow()], [torch.ones(1)]
    pending.ended()
    first = threading.Thread(target=pending.settle)
    second = threading.Thread(target=lambda: (pending.settle(), seen.append("second goes on")))
    first.start()
    copying.wait(60)
    second.start()
    second.join(0.2)
    go_on.set()
    first.join()
    second.join()
    assert seen == ["copied", "second goes on"]


def a_read_on_another_stream():
    """Later reads that have waited for earlier ones stand for them, and no other."""
    x, streams = torch.ones(4), [torch.cpu.Stream(), torch.cpu.Stream()]
    for stream in streams:
        stream.wait_stream(torch.cpu.current_stream())
        with torch.cpu.stream(stream):
            (x * 2).record_stream(torch.cpu.current_stream())
    torch.cpu.current_stream().wait_stream(streams[1])  # and not for the first
    x.add_(1)


def summed_in_inference_mode(asynchronous):
    with torch.inference_mode():
        x = torch.ones(4)
        work = dist.all_reduce(x, async_op=asynchronous)
    if asynchronous:
        work.wait()
    return x


@pytest.mark.parametrize("asynchronous", [False, True])
def test_results_come_where_inference_mode_is_over(asynchronous):
    for x in launch(summed_in_inference_mode, asynchronous, world_size=2, device="strict").returns:
        assert x.tolist() == [2.0] * 4


def test_a_read_that_nothing_waited_for_is_still_a_race():
    with pytest.raises(RankError, match="add_ .* writes a tensor that mul .* on another stream, may still read"):
        launch(a_read_on_another_stream, world_size=1, device="strict")


# ---- what was wrong in ringzero itself: each fault put back, and named


def with_threads_where_streams_are():
    """Until the executor had streams: reductions in a thread of their own, the program's own calls beside them."""
    thread = executor.Thread()
    travel.queue_of = lambda group, device: thread
    return train("unused")


def with_ungrouped_batches():
    """torch groups messages only for its own kind of process group, and a recorded one is another kind."""
    rank, n, arrived = dist.get_rank(), dist.get_world_size(), torch.empty(4)
    torch_s = inspect.getclosurevars(dist.batch_isend_irecv).nonlocals["original"]
    messages = dist.P2POp(dist.isend, torch.ones(4), (rank + 1) % n), dist.P2POp(dist.irecv, arrived, (rank - 1) % n)
    for work in torch_s(list(messages)):
        work.wait()
    return arrived


def without_waiting_for_a_round():
    class Impatient(run._Grouped):
        def wait(self, request):
            device = torch.device("cpu")
            self._group._start_coalescing(device)
            for post, tensor, peer in self._round:
                post([tensor], peer, 0)
            self._group._end_coalescing(device)
            self._round = []

    run._Grouped = Impatient
    return collectives.all_reduce(torch.ones(12), algorithm="ring")


def without_waiting_for_gradients():
    """The side stream begins before the gradients are there."""
    executor.Stream.submit = functools.partialmethod(_submit_at_once)
    return train("ddp by ring")


def _submit_at_once(self, job, after=None):
    with self._module.stream(self._stream):
        job()
    return executor.OnStream(self._module.current_stream, self._stream.record_event(), job, after)


def without_waiting_for_the_side_stream():
    """The optimizer begins before the sums are there."""
    executor.OnStream.result = lambda self: None
    return train("zero 1")


@pytest.mark.parametrize(
    ("program", "said"),
    [
        # Ranks that come to it in another order may say so first: ``two_threads_in_turns`` has one answer.
        (with_threads_where_streams_are, "two threads use one communicator|on NCCL these two meet"),
        (with_ungrouped_batches, "gloo forgives this, NCCL does not"),
        (without_waiting_for_a_round, r"first wait\(\) for"),
        (without_waiting_for_gradients, "on another stream, may still write"),
        (without_waiting_for_the_side_stream, "may still"),
    ],
)
def test_a_fault_that_ringzero_had_is_named(program, said):
    with pytest.raises(RankError, match=said):
        launch(program, world_size=3, device="strict")


# ---- queues, without ranks


def sends(rank, *peers, batch=None, **fields):
    return [Operation("send", rank, 0.0, peer=peer, members=(0, 1, 2), batch=batch, **fields) for peer in peers]


def receives(rank, *peers, batch=None, **fields):
    return [Operation("recv", rank, 0.0, peer=peer, members=(0, 1, 2), batch=batch, **fields) for peer in peers]


def collective(rank, kind="all_reduce", group="all", members=(0, 1, 2)):
    return [Operation(kind, rank, 0.0, group=group, members=members, line=f"{kind} in {group}")]


def test_a_ring_of_single_messages_never_ends_and_a_batch_does():
    def ring(batch):
        return [sends(r, (r + 1) % 3, batch=batch) + receives(r, (r - 1) % 3, batch=batch) for r in range(3)]

    stuck = Queues(ring(None))
    assert [op.kind for op in stuck.stuck()] == 3 * ["send"]
    assert not stuck.is_done(next(stuck.stuck()))
    assert not list(Queues(ring(0)).stuck())


def test_a_collective_of_the_default_group_needs_all_ranks():
    alone = [collective(0, members=()), [], []]
    assert [op.kind for op in Queues(alone).stuck()] == ["all_reduce"]
    assert not list(Queues([collective(rank, members=()) for rank in range(3)]).stuck())


def test_part_of_a_batch_may_end_before_the_rest():
    """Rank 1 goes on once its own message is there, and rank 0's batch needs what comes of that."""
    ranks = [sends(0, 1, batch=0) + receives(0, 2, batch=0), receives(1, 0) + sends(1, 2), receives(2, 1) + sends(2, 0)]
    assert not list(Queues(ranks).stuck())


def test_each_group_has_a_queue_but_they_should_agree():
    a, b = ([collective(r, group=group) for r in range(3)] for group in ("a", "b"))
    same = [a[r] + b[r] for r in range(3)]
    differ = [b[0] + a[0], *same[1:]]
    assert another_order(same) is None
    assert not list(Queues(differ).stuck())
    said = another_order(differ)
    assert "rank 0 begins with all_reduce (all_reduce in b)" in said or "rank 0" in said


def test_an_end_that_is_missing_is_never_done():
    queues = Queues([sends(0, 1), [], []])
    (op,) = queues.stuck()
    assert not queues.is_done(op)
    assert queues.behind(op) == []


def trains_with_torchs_ddp():
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)).double(), bucket_cap_mb=1e-4
    )
    for step in range(3):
        model.zero_grad()
        x = torch.full((2, 3), float(dist.get_rank() + step), dtype=torch.float64)
        model(x).square().sum().backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def test_torchs_own_ddp_whose_reducer_asks_from_c_plus_plus():
    """It asks each work for its future from a hook, where nothing else had said that what strict does is its own."""
    on_gloo = launch(trains_with_torchs_ddp, world_size=3, device="cpu").returns
    by_rules = launch(trains_with_torchs_ddp, world_size=3, device="strict").returns
    for one, other in zip(on_gloo, by_rules, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
