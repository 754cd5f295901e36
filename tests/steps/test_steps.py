"""A training step on paper: the clock beside closed forms, and what each system does in which order."""

import random

import pytest

from ringzero.collectives import verify
from ringzero.collectives.ring import ring_all_reduce
from ringzero.costs import offload
from ringzero.network import dgx_h100, price
from ringzero.network.nccl_rings import nccl_rings
from ringzero.steps import passes, systems
from ringzero.steps.machine import Machine, dgx, load, of_gpus
from ringzero.steps.run import run
from ringzero.steps.task import COMPUTE, COPY, NETWORK, Step
from ringzero.steps.unit import Bucket, Unit, buckets, one_bucket

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather")


def machine(latency=0.0, per_byte=1.0, ranks=4, **others):
    """A byte a second, and nothing else takes time, unless ``others`` say so."""
    half = (latency / 2, per_byte / 2)
    lines = {"all_reduce": (latency, per_byte), "reduce_scatter": half, "all_gather": half}
    given = {"flops": 1.0, "memory_bandwidth": 1e30, "message": {"nodes": (0.0, 0.0)}} | others
    return Machine(
        "test", ranks, 1, collectives={(c, g): (lines[c],) for c in COLLECTIVES for g in ("all", "nodes")}, **given
    )


def stack(layers, elements=1, forward=1.0, backward=2.0, kept=0.0):
    return [Unit(f"layer {i}", (elements,), forward, backward, kept) for i in range(layers)]


def of_kind(timed, kind):
    return [op for op in timed.operations if op.kind == kind]


def sent(timed, kind):
    return sum(op.bytes for op in of_kind(timed, kind))


# ---- the clock


def test_a_task_waits_for_its_queue_for_others_and_for_its_meeting():
    step = Step("test")
    first = step.add("a", 0, "compute", COMPUTE, 1.0)
    step.add("b", 0, "compute", COMPUTE, 2.0)
    meeting = step.meeting()
    step.add("all_reduce", 0, "network", NETWORK, 4.0, after=[first], meeting=meeting)
    late = step.add("c", 1, "compute", COMPUTE, 2.5)
    step.add("all_reduce", 1, "network", NETWORK, 3.0, after=[late], meeting=meeting)
    timed = run(step)
    assert timed.begins == (0.0, 1.0, 2.5, 0.0, 2.5)
    assert timed.ends == (1.0, 3.0, 6.5, 2.5, 6.5)
    assert timed.seconds == 6.5
    assert (timed.computing(0), timed.exposed(0), timed.bubble(0)) == (3.0, 3.5, 0.0)
    assert timed.bubble(1) == 0.0


def test_tasks_share_a_resource():
    step = Step("test")
    step.add("a", 0, "one", NETWORK, 1.0)
    step.add("b", 0, "two", NETWORK, 2.0)
    assert run(step).ends == (2.0, 3.0)  # half as fast until the first ends


def test_computing_and_collectives_slow_each_other_down():
    step = Step("test")
    step.add("all_reduce", 0, "network", NETWORK, 3.0, beside=4.5, slows=2.0)
    step.add("forward", 0, "compute", COMPUTE, 6.0)
    assert run(step).ends == pytest.approx((4.5, 8.25))  # computing is half as fast for 4.5 s, and then alone
    step.add("all_gather", 0, "gathers", NETWORK, 1.0, slows=1.5)
    # While both travel, each half as fast and computing a third as fast: the gather ends at 2, and 3 - 2 / 3 remain.
    assert run(step).ends == pytest.approx((2 + (3 - 2 / 3) * 1.5, 5.5 + (6 - 2 / 3 - 3.5 / 2), 2.0))


def test_tasks_that_wait_for_each_other_are_named():
    step = Step("test")
    step.add("send", 0, "network", NETWORK, 1.0, after=[1], name="x")
    step.add("send", 1, "network", NETWORK, 1.0, after=[0], name="y")
    with pytest.raises(ValueError, match="wait for each other: send x of rank 0, send y of rank 1"):
        run(step)


def test_any_step_keeps_its_order():
    dice = random.Random(0)
    for _ in range(200):
        step = Step("random")
        for number in range(30):
            resource = dice.choice([COMPUTE, NETWORK, COPY])
            after = dice.sample(range(number), min(number, dice.randint(0, 3)))
            slows = dice.choice([1.0, 1.3]) if resource == NETWORK else 1.0
            queue = resource + dice.choice("ab")
            step.add("t", dice.randrange(3), queue, resource, dice.random(), after=after, slows=slows)
        timed = run(step)
        last = {}
        for number, task in enumerate(step.tasks):
            ready = max([last.get((task.rank, task.queue), 0.0), *(timed.ends[before] for before in task.after)])
            assert timed.begins[number] == pytest.approx(ready)
            assert timed.ends[number] - timed.begins[number] > task.seconds - 1e-9
            last[task.rank, task.queue] = timed.ends[number]


# ---- systems, where a byte takes a second


def test_naive_adds_up_and_flat_too():
    units = stack(3, elements=2)
    for how in ("naive", "flat"):
        timed = run(systems.data_parallel(units, machine(), how=how, element=1))
        assert timed.seconds == pytest.approx(3 * 3 + 6)
        assert timed.exposed(0) == pytest.approx(6)


def test_where_ranks_meet_after_every_unit_they_wait_for_the_slowest():
    units = [Unit(name, (2, 1), 1.0, 2.0) for name in "abc"]
    lost = {}
    for how in ("naive", "flat", "bucketed"):
        times = [run(systems.data_parallel(units, machine(meeting=m), how=how, element=1)).seconds for m in (0, 0.5)]
        lost[how] = times[1] - times[0]
    assert lost == pytest.approx({"naive": 3 * 0.5, "flat": 0, "bucketed": 0})


@pytest.mark.parametrize("layers", [1, 2, 5])
@pytest.mark.parametrize("per_byte", [0.1, 2.0, 5.0])
def test_buckets_leave_while_the_backward_pass_goes_on(layers, per_byte):
    """The end of all-reduce i is max(end of i - 1, its gradients) plus what it takes."""
    timed = run(systems.data_parallel(stack(layers), machine(0.5, per_byte), element=1, bucket_bytes=1))
    done = 0.0
    for i in range(layers):
        done = max(done, layers + 2.0 * (i + 1)) + 0.5 + per_byte
    assert timed.seconds == pytest.approx(done)


def test_buckets_close_as_ddp_closes_them():
    units = [Unit(name, (10, 1), 0, 0) for name in "abc"]  # gradients come as 1, 10, 1, 10, 1, 10
    assert buckets(units, 12, 1, first_bytes=1) == [Bucket(1, 2), Bucket(21, 1), Bucket(11, 0)]
    assert buckets(units, 12, 1, first_bytes=11) == [Bucket(11, 2), Bucket(12, 0), Bucket(10, 0)]
    assert one_bucket(units) == [Bucket(33, 0)]


def test_zero_sends_what_its_stage_says():
    units, n = stack(4, elements=8), 4
    bytes_of = {}
    for stage in (1, 2, 3):
        timed = run(systems.zero(units, machine(), stage, element=1, bucket_bytes=8))
        bytes_of[stage] = {kind: sent(timed, kind) for kind in ("reduce_scatter", "all_gather")}
    assert bytes_of[1] == bytes_of[2] == {"reduce_scatter": 8 * n, "all_gather": 8 * n}
    assert bytes_of[3] == {"reduce_scatter": 8 * n, "all_gather": 2 * 8 * n}


@pytest.mark.parametrize("prefetch", [0, 1, 2])
def test_stage_3_gathers_ahead_as_a_window_of_layers_does(prefetch):
    """Where nothing is reduced, and copies are gathers, ``costs.offload`` has the same sliding window."""
    dice = random.Random(prefetch)
    units = [Unit(f"{i}", (dice.randint(1, 9),), dice.random() * 4, 0.0) for i in range(6)]
    step = Step("forward")
    gathers = passes.Gathers(step, units, machine(), "all", 1.0, prefetch)
    passes.forward_pass(step, units, gathers)
    copies = [unit.elements / 2 for unit in units]
    expected = offload.window_seconds(copies, [unit.forward for unit in units], prefetch + 1)
    assert run(step).seconds == pytest.approx(expected)


def test_stage_2_has_one_reduction_on_its_way():
    timed = run(systems.zero(stack(5, 4, backward=0.1), machine(), 2, element=1, bucket_bytes=1))
    reductions, backwards = of_kind(timed, "reduce_scatter"), of_kind(timed, "backward")
    for place, backward in enumerate(backwards[2:], start=2):
        assert backward.start >= reductions[place - 2].end - 1e-9
    free = run(systems.zero(stack(5, 4, backward=0.1), machine(), 1, element=1, bucket_bytes=1))
    assert of_kind(free, "backward")[-1].end < of_kind(timed, "backward")[-1].end


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 3), (2, 2), (4, 8), (4, 3), (3, 1)])
def test_a_pipeline_s_bubble(schedule, stages, micro_batches):
    """(p - 1) / m of the work, of both schedules (Narayanan et al. 2021), where messages take no time."""
    step = systems.pipeline([stack(2)] * stages, machine(), micro_batches, schedule=schedule)
    timed, work = run(step), micro_batches * 2 * 3.0
    assert timed.seconds == pytest.approx(work * (1 + (stages - 1) / micro_batches))
    for rank in range(stages):
        assert timed.computing(rank) == pytest.approx(work)
        assert timed.bubble(rank) == pytest.approx((stages - 1) / (micro_batches + stages - 1))


def test_one_forward_one_backward_keeps_fewer_activations():
    peaks = {
        schedule: [
            run(systems.pipeline([stack(1, kept=1.0)] * 4, machine(), 8, schedule=schedule)).peak_memory(rank)
            for rank in range(4)
        ]
        for schedule in ("gpipe", "1f1b")
    }
    assert peaks == {"gpipe": [8.0] * 4, "1f1b": [4.0, 3.0, 2.0, 1.0]}


def test_tensor_parallelism_hides_nothing():
    units = [Unit("a", (4,), 8.0, 16.0, output=1.0)] * 3
    timed = run(systems.tensor_parallel(units, machine(), group="all"))
    assert timed.computing(0) == pytest.approx(3 * 24 / 4)
    assert timed.exposed(0) == pytest.approx(3 * 2 * 2)


def test_offloading_overlaps_copies_with_the_host_s_steps():
    its = {"copies": 1.0, "host_adam": 1.0, "adam": 0.0}
    timed = run(systems.zero(stack(4, 4), machine(0, 0, 1, **its), 2, element=1, bucket_bytes=1, offload=True))
    # Gradients go down from 6 to 22, one on its way while the next is made; 4 steps of 4 s; the last copy up.
    assert timed.seconds == pytest.approx(22 + 16 + 4)


def test_offloaded_parameters_are_gathered_once_all_are_stepped():
    """The library's gathers are in the optimizer's thread, behind its last step."""
    its = {"copies": 1e9, "host_adam": 1.0}
    timed = run(systems.zero(stack(4, 4), machine(0, 1.0, **its), 2, element=1, bucket_bytes=1, offload=True))
    last_step = max(op.end for op in of_kind(timed, "optimizer"))
    assert min(op.start for op in of_kind(timed, "all_gather")) >= last_step


def test_stage_3_pays_for_its_hooks_once_a_unit_and_pass():
    free = machine(0, 0)
    paid = machine(0, 0, hooks=0.25)
    seconds = lambda stage, on: run(systems.zero(stack(5), on, stage, element=1)).seconds  # noqa: E731
    assert seconds(3, paid) - seconds(3, free) == pytest.approx(2 * 5 * 0.25)
    assert seconds(2, paid) == seconds(2, free)


def test_what_a_stage_copies_takes_time():
    """2 bytes of memory for each byte: gradients into their bucket; from stage 2 on the rank's shard out of what is
    freed, the whole buffer's on 1 rank; in stage 3 also the shard into what is gathered, twice."""
    slow = machine(0, 0, ranks=1, memory_bandwidth=2.0)
    seconds = [run(systems.zero(stack(1, 8), slow, stage, element=1)).seconds for stage in (1, 2, 3)]
    adam = slow.adam_seconds(8)
    assert seconds == pytest.approx([3 + 8 + adam, 3 + 8 + 8 + adam, 3 + 8 + 8 + 2 * 8 + adam])


SYSTEMS = {
    "naive": lambda u, m: systems.data_parallel(u, m, how="naive"),
    "DDP": systems.data_parallel,
    **{f"ZeRO-{stage}": lambda u, m, stage=stage: systems.zero(u, m, stage) for stage in (1, 2, 3)},
    "HSDP": lambda u, m: systems.zero(u, m, 3, hybrid=True),
    "offloaded": lambda u, m: systems.zero(u, m, 2, offload=True),
    "1F1B": lambda u, m: systems.pipeline([u[:3], u[3:]], m, 4),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_time_and_memory_add_up(name):
    units = [Unit(f"layer {i}", (2**22, 2**10), 1e-3, 2e-3, 2**20, 2**18) for i in range(6)]
    timed = run(SYSTEMS[name](units, dgx("DGX H100", 2)))
    for rank in timed.step.ranks:
        computing, exposed = timed.computing(rank), timed.exposed(rank)
        assert computing + exposed + timed.bubble(rank) * timed.seconds == pytest.approx(timed.seconds)
        assert timed.memory(rank)[-1][1] == pytest.approx(timed.step.base)  # all is given back
        assert timed.peak_memory(rank) > timed.step.base
    for op in timed.operations:
        assert op.wait is None or op.start <= op.wait <= op.end
    waited = sum(op.end - op.wait for op in timed.operations if op.rank == 0 and op.wait is not None)
    assert waited >= timed.exposed(0) - 1e-9


def test_states_are_held_as_zero_shards_them():
    """Bytes a parameter before the step, on 4 ranks: fp32, and bf16 with a master."""
    units, four = stack(1, elements=1000), machine(copies=1.0, ranks=4)
    assert systems.data_parallel(units, four).base == 16 * 1000
    assert [systems.zero(units, four, stage).base / 1000 for stage in (1, 2, 3)] == [8 + 2, 4 + 3, 4]
    assert [systems.zero(units, four, stage, element=2).base / 1000 for stage in (1, 2, 3)] == [4 + 3, 2 + 3.5, 4]
    assert systems.zero(units, four, 2, element=2, offload=True).base / 1000 == 2 + 0.5


def test_steps_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="stage is 4"):
        systems.zero(stack(1), machine(), 4)
    with pytest.raises(ValueError, match="how is 'bucketd'; it is one of naive, flat, bucketed"):
        systems.data_parallel(stack(1), machine(), how="bucketd")
    with pytest.raises(ValueError, match="test has no time of a message in the group 'node'"):
        systems.pipeline([stack(1)] * 2, machine(), 1, group="node")
    with pytest.raises(ValueError, match="schedule is 'zero bubble'"):
        systems.pipeline([stack(1)], machine(), 1, schedule="zero bubble")


# ---- machines


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("ranks_per_node", [1, 2, 4])
def test_rings_of_all_cards_are_right(collective, ranks_per_node):
    verify(nccl_rings(collective, 3, ranks_per_node))


def test_all_cards_carry_an_all_reduce():
    """One ring uses one card of a node's eight, 50 GB/s; eight rings use all."""
    schedules = ring_all_reduce(16), nccl_rings("all_reduce", 2, 8)
    one, eight = (price(schedule, 1e12, dgx_h100(2)).seconds for schedule in schedules)
    assert one / eight == pytest.approx(8, rel=0.001)
    assert dgx("DGX H100", 2).effective_bandwidth("all_reduce") == pytest.approx(400e9)
    assert dgx("DGX H100", 1).effective_bandwidth("all_reduce") == pytest.approx(450e9)
    assert of_gpus("H100", 16, 1).effective_bandwidth("all_reduce") == pytest.approx(50e9)


def test_a_machine_is_saved_and_loaded(tmp_path):
    key = "all_reduce", "all"
    measured = {"measured": {key: ((1.0, 2.0),)}, "beside": {key: ((1.0, 3.0, 1.5),)}}
    saved = machine(0.25, 3.0, products=((8.0, 4.0, 4.0, 10.0, 20.0),), hooks=0.5, **measured)
    saved.save(tmp_path / "machine.json")
    assert load(tmp_path / "machine.json") == saved
    (tmp_path / "other.json").write_text('{"name": "x"}')
    with pytest.raises(ValueError, match="other.json is no machine that `ringzero measure --json` wrote"):
        load(tmp_path / "other.json")


def test_measured_collectives_lie_on_the_line_between_two_sizes():
    times, busy = ((4.0, 2.0), (8.0, 3.0), (16.0, 9.0)), ((4.0, 4.0, 1.0), (8.0, 2.0, 1.5), (16.0, 12.0, 2.0))
    both = {"measured": {("all_reduce", "all"): times}, "beside": {("all_reduce", "all"): busy}}
    here = machine(**both)
    assert [here.seconds("all_reduce", size) for size in (4, 6, 8, 12, 32)] == [2.0, 2.5, 3.0, 6.0, 21.0]
    assert here.seconds("all_gather", 6) == machine().seconds("all_gather", 6)
    assert here.beside_computing("all_reduce", 12) == (7.0, 1.75)
    assert here.beside_computing("all_reduce", 8) == (3.0, 1.5)  # never faster than alone
    assert here.beside_computing("all_reduce", 32)[1] == 2.0
    assert here.beside_computing("all_gather", 6) == (machine().seconds("all_gather", 6), 1.0)


def test_products_take_the_measured_rate_of_their_shape():
    rows = ((10.0, 4.0, 4.0, 320.0, 320.0), (30.0, 4.0, 4.0, 480.0, 480.0))
    here = machine(products=rows)
    assert here.product_seconds(10, 4, 4) == pytest.approx((1.0, 2.0))
    assert here.product_seconds(20, 4, 4) == pytest.approx((1.5, 3.0))  # between 1.0 and 2.0
    assert here.product_seconds(20, 8, 4) == pytest.approx((3.0, 6.0))
    assert here.faster(2).product_seconds(20, 4, 4) == pytest.approx((0.75, 1.5))
    assert machine(flops=8.0).product_seconds(1, 2, 2) == pytest.approx((1.0, 2.0))


def test_shares_of_a_peak_are_checked():
    with pytest.raises(ValueError, match="reached is 1.2; give a share of the peak"):
        dgx("DGX H100", reached=1.2)
