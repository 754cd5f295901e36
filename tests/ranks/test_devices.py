"""On what ranks compute and through what they talk, on machines with any number of GPUs."""

import pytest

from ringzero.ranks import devices
from ringzero_course import lab
from ringzero_course.boxes import sandbox


@pytest.fixture
def gpus(monkeypatch):
    return lambda count: monkeypatch.setattr(devices, "_gpus", lambda: count)


@pytest.mark.parametrize(
    ("count", "device", "ranks", "resolved"),
    [
        (0, "auto", 1, "cpu"), (1, "auto", 1, "cuda"), (1, "auto", 2, "cpu"), (2, "auto", 2, "cuda"),
        (2, "cuda", 2, "cuda"), (1, "cuda:0", 4, "cuda:0"), (0, "strict:7", 3, "strict:7"), (2, "cpu", 2, "cpu"),
    ],
)  # fmt: skip
def test_a_call_runs_where_it_can(gpus, count, device, ranks, resolved):
    gpus(count)
    assert devices.resolve(device, ranks) == resolved


@pytest.mark.parametrize(
    ("count", "device", "says"),
    [
        (1, "cuda", "needs a GPU for each of 2 ranks"), (1, "cuda:1", "is not there"), (0, "gpu", "device is 'gpu'"),
        (0, "strict:x", "device is 'strict:x'"), (0, "auto:1", "device is 'auto:1'"), (0, 3, "device is 3"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name(gpus, count, device, says):
    gpus(count)
    with pytest.raises(ValueError, match=says):
        devices.resolve(device, 2)


@pytest.mark.parametrize(
    ("count", "device", "by_ranks"),
    [
        (0, "auto", ["cpu", "cpu", "cpu"]),
        (1, "auto", ["cpu", "cpu", "cpu"]),  # not NCCL for one rank and the CPU for the others
        (2, "auto", ["cuda", "cuda", "cpu"]),
        (2, "cuda", ["cuda", "cuda", "cpu"]),
        (1, "cuda", ["cuda", "cuda", "cuda"]),  # which ``resolve`` refuses for more than one
        (4, "cpu", ["cpu", "cpu", "cpu"]),
        (4, "strict:3", ["cpu", "strict:3", "strict:3"]),
    ],
)
def test_a_lab_has_one_answer(gpus, count, device, by_ranks):
    gpus(count)
    assert [devices.of_a_check(device, ranks) for ranks in (1, 2, 3)] == by_ranks


@pytest.mark.parametrize(("asked", "count"), [(None, 2), (False, 0), (True, 2)])
def test_ranks_in_a_sandbox_have_gpus_only_where_asked(monkeypatch, asked, count):
    """``asked`` None: no sandbox."""
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    if asked is not None:
        (name, limits), *_ = sandbox.asking_for(sandbox.Limits(gpus=asked)).items()
        monkeypatch.setenv(name, limits)
    assert devices.of_a_check("auto", 2) == ("cuda" if count else "cpu")


def double(tensor):
    """Wrong everywhere: no sum at all."""
    import torch.distributed as dist

    rank, n = dist.get_rank(), dist.get_world_size()
    dist.batch_isend_irecv([dist.P2POp(dist.isend, tensor.clone(), (rank + 1) % n),
                            dist.P2POp(dist.irecv, tensor, (rank - 1) % n)])[-1].wait()  # fmt: skip


def ring_of_single_messages(tensor):
    """Right on gloo, where two messages may be on their way at once."""
    import torch
    import torch.distributed as dist

    rank, n, arrived = dist.get_rank(), dist.get_world_size(), torch.empty_like(tensor)
    passed_on = tensor.clone()
    for _ in range(n - 1):
        works = [dist.isend(passed_on, (rank + 1) % n), dist.irecv(arrived, (rank - 1) % n)]
        for work in works:
            work.wait()
        passed_on = arrived.clone()
        tensor += arrived


@pytest.mark.parametrize(("function", "reason"), [(ring_of_single_messages, "right on gloo, wrong on NCCL: "
                                                   "gloo forgives this"), (double, "with 3 ranks")])  # fmt: skip
def test_a_reason_says_where_it_is_wrong(function, reason):
    check = lab.Check(function, points=1, world_size=3)
    run = check.run(numel=12)
    check.that("the sum", run, lab.claims.everyone_has_the_sum)
    check.on_nccl(run, lab.claims.everyone_has_the_sum)
    check.score()
    on_gloo, on_nccl = (verdict.why for verdict in check.verdicts)
    assert on_nccl.startswith(reason)
    assert (on_gloo is None) == on_nccl.startswith("right on gloo")
    assert ("NCCL's rules" in check._ran()) == (on_gloo is None)  # what is wrong on gloo is not called again


def the_same_ring(tensor):
    """Another function for the check, which does not run one again that hung."""
    ring_of_single_messages(tensor)


def test_a_strict_lab_checks_once_by_nccls_rules():
    check = lab.Check(the_same_ring, points=1, world_size=3, device="strict")
    run = check.run(numel=12)
    check.on_nccl(run, lab.claims.everyone_has_the_sum)
    assert check.score() == 0
    assert "gloo forgives this" in check.verdicts[0].why
    assert check._ran() == "3 ranks: NCCL's rules, CPU"


def test_what_torch_says_of_first_messages_on_nccl_is_not_shown():
    """As two ranks on NCCL 2.28.9 printed it."""
    check = lab.Check(double, points=1, world_size=2)
    said = (
        "[rank0]:[W1126 08:03:40.434018535 ProcessGroupNCCL.cpp:4094] Warning: An unbatched P2P op (send/recv) was "
        "called on this ProcessGroup with size 2.  In lazy initialization mode, this will result in a new 2-rank NCCL "
        "communicator to be created. (function operator())"
    )
    check.run(numel=4).printed = [f"mine\n{said}\n", said]
    assert check._printed() == ("rank 0 │ mine",)
