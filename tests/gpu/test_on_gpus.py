"""What only a GPU can show: ``python -m pytest tests/gpu`` takes minutes on one GPU, and on two.

Without a GPU it is skipped, by name, but for the last test, which compares lists. ``test_strict`` shows the same
programs by NCCL's rules on the CPU. On one GPU, tests for two let both ranks use that one: see ``one_as_two``. That
shows what is computed and in which order, never how fast.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from ringzero import launch
from ringzero.ranks import devices, pool
from ringzero.ranks.torchrun import torchrun_command
from ringzero_course.boxes import sandbox
from ringzero_course.grading import build_labs
from tests.strict.test_strict import WRAPPED, every_algorithm, train

GPUS = torch.cuda.device_count()
one = pytest.mark.skipif(GPUS < 1, reason="needs a GPU")
SIZES = (0, 1, 7, 60, 100_003)
HERE = Path(__file__)


@pytest.fixture
def two(monkeypatch):
    """Two ranks on NCCL: on a GPU each, or both on the only one."""
    if GPUS < 1:
        pytest.skip("needs a GPU")
    if GPUS < 2:
        monkeypatch.setenv("PYTHONPATH", str(HERE.parent / "one_as_two"), prepend=os.pathsep)
        monkeypatch.setattr(devices, "_gpus", lambda: 2)
    pool.stop()  # ranks that started before see another machine
    yield
    pool.stop()


def every_algorithm_on_gpu(sizes):
    """As ``every_algorithm``, which makes its tensors on the CPU, on this rank's GPU."""
    import ringzero.collectives as collectives

    rank, found = dist.get_rank(), {}
    for numel in sizes:
        for name in collectives.ALGORITHMS["all_reduce"]:
            x = torch.arange(numel).float() + 100 * rank
            assert x.is_cuda
            try:
                found[name, numel] = collectives.all_reduce(x, algorithm=name).cpu()
            except ValueError as error:
                found[name, numel] = type(error).__name__
    torch.cuda.synchronize()
    return found


def expected_sums(sizes, ranks):
    return {numel: torch.arange(numel, device="cpu").float() * ranks + 100 * sum(range(ranks)) for numel in sizes}


def check_sums(returns):
    expected = expected_sums(SIZES, len(returns))
    for found in returns:
        for (name, numel), value in found.items():
            assert isinstance(value, str) or torch.equal(value, expected[numel]), (name, numel)


@one
def test_one_rank_on_nccl():
    check_sums(launch(every_algorithm_on_gpu, SIZES, world_size=1, device="cuda", timeout=300).returns)


@one
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", WRAPPED)
def test_training_on_one_rank(name, traced):
    found = launch(train_on_gpu, name, world_size=1, device="cuda", timeout=300, trace=traced).returns[0]
    expected = launch(train, name, world_size=1, device="cpu").returns[0]
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def train_on_gpu(name):
    return {key: value.cpu() for key, value in train(name, device="cuda").items()}


def held_with_states_elsewhere(home_of):
    """Bytes that CUDA's allocator has after a step, and the parameters."""
    from ringzero.zero import ZeroStage3

    torch.manual_seed(0)
    module = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, bias=False) for _ in range(8))).double().cuda()
    model = ZeroStage3(module, torch.optim.AdamW, lr=0.01, units=list(module), home=home_of())
    for step in range(3):
        torch.manual_seed(step)
        model(torch.randn(16, 1024, dtype=torch.float64, device="cuda")).square().mean().backward()
        model.clip_grad_norm_(1.0)
        model.step()
        model.zero_grad()
    torch.cuda.synchronize()
    return torch.cuda.memory_allocated(), torch.cat([value.reshape(-1) for value in model.state_dict().values()]).cpu()


@one
def test_states_on_the_host_give_the_gpus_memory_back(tmp_path):
    """In float64: where a gradient is nearly 0, AdamW makes much of its last bits, which CPU and GPU round apart."""
    from ringzero.zero import File, Host

    homes = {
        "device": lambda: None,
        "host": Host,
        "parameters": lambda: Host(parameters=True),
        "file": lambda: File(tmp_path, parameters=True),
    }
    ran = {name: launch(held_with_states_elsewhere, home, world_size=1, device="cuda") for name, home in homes.items()}
    held = {name: each.returns[0][0] for name, each in ran.items()}
    model = 8 * 1024 * 1024 * 8
    assert held["device"] - held["host"] >= 2 * model  # the states, and the gradients
    assert held["host"] - held["parameters"] >= 0.99 * model
    for name in homes:
        torch.testing.assert_close(ran[name].returns[0][1], ran["device"].returns[0][1], rtol=1e-7, atol=1e-9)


def devices_after_leaving():
    from ringzero.zero import Host, ZeroStage2

    module = torch.nn.Linear(8, 8).cuda()
    ZeroStage2(module, torch.optim.AdamW, home=Host()).leave()
    return {str(parameter.device) for parameter in module.parameters()}


@one
def test_who_leaves_states_on_the_host_has_its_parameters_on_the_gpu():
    assert launch(devices_after_leaving, world_size=1, device="cuda").returns == [{"cuda:0"}]


@pytest.mark.usefixtures("two")
def test_programs_at_random_on_two_ranks(tmp_path):
    """Right or refused, on NCCL: see ``tests.peers.hunt``."""
    from tests.peers.programs import FAILED, drawn, run_all

    programs = [each for number in range(20) if (each := drawn("gpu", number)).ranks == 2]
    outcomes = run_all(programs, tmp_path, 100.0, "cuda")
    failed = [f"{p}: {why}" for p, (outcome, why) in zip(programs, outcomes, strict=True) if outcome in FAILED]
    assert not failed, "\n".join(failed)


@one
def test_ranks_that_share_a_gpu_talk_through_gloo():
    check_sums(launch(every_algorithm_on_gpu, SIZES, world_size=3, device="cuda:0", timeout=300).returns)


@pytest.mark.usefixtures("two")
def test_two_ranks_on_nccl():
    check_sums(launch(every_algorithm_on_gpu, SIZES, world_size=2, device="cuda", timeout=300).returns)
    check_sums(launch(every_algorithm_on_gpu, SIZES, world_size=2, device="cuda", timeout=300, trace=True).returns)


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("name", WRAPPED)
def test_training_on_two_ranks(name):
    found = launch(train_on_gpu, name, world_size=2, device="cuda", timeout=300, trace=True).returns[0]
    expected = launch(train, name, world_size=2, device="cpu").returns[0]
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("lab", build_labs.labs())
def test_a_labs_reference_gets_every_point(lab):
    from tests.live_notebook import assert_all_points, kernel_of

    with kernel_of(build_labs.source_notebook(lab)) as kernel:
        assert_all_points(kernel.run_all().values())


@one
@pytest.mark.skipif(sandbox.missing_ability() is not None, reason="needs bubblewrap")
@pytest.mark.parametrize("asked", [False, True])
def test_a_sandbox_has_gpus_where_that_was_asked_for(asked):
    count = "import torch; print(torch.cuda.device_count(), float(torch.ones(3, device='cuda').sum()))"
    box = sandbox.enclosed([sys.executable, "-c", count], [], sandbox.Limits(gpus=asked))
    done = subprocess.run(box, env=sandbox.environment(), capture_output=True, text=True, timeout=300, check=False)
    if asked:
        assert done.stdout.split() == [str(GPUS), "3.0"], done.stderr
    else:
        assert not done.stdout
        assert "CUDA" in done.stderr or "NVIDIA" in done.stderr, done.stderr


@one
def test_memory_is_what_the_allocator_says():
    returns = launch(peaks, world_size=1, device="cuda", timeout=300).returns
    for ours, allocators in returns:
        assert ours <= allocators <= ours * 1.05 + 2**21  # the allocator hands out blocks of 512 bytes


def peaks():
    from ringzero.record.memory import MemoryTimeline

    net = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)])
    optimizer = torch.optim.AdamW(net.parameters())
    x = torch.randn(64, 1024)
    net(x).sum().backward()  # cuBLAS takes its workspace
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with MemoryTimeline(net, optimizer) as memory:
        held = memory.history().totals[-1] + x.nbytes  # the timeline sees x when it is used
        net(x).sum().backward()
        optimizer.step()
    torch.cuda.synchronize()
    return memory.peak().total, torch.cuda.max_memory_allocated() - before + held


SHARED = """
import os, sys
os.environ["NCCL_HOSTID"] = os.environ["RANK"]      # else NCCL refuses two ranks on one GPU
import torch, torch.distributed as dist
torch.cuda.set_device(0); torch.set_default_device("cuda:0")
dist.init_process_group("nccl")
sys.path.insert(0, {root!r})
from tests.gpu.test_on_gpus import SIZES, check_sums, every_algorithm_on_gpu
check_sums([every_algorithm_on_gpu(SIZES)] * dist.get_world_size())
dist.destroy_process_group()
"""


@one
@pytest.mark.parametrize("sanitizer", ["0", "1"])
def test_two_nccl_ranks_on_one_gpu(tmp_path, sanitizer):
    """NCCL does not support this; over sockets it works, for what is computed and never for how fast.

    With torch's sanitizer, which finds kernels of two streams that use one tensor in no order.
    """
    script = tmp_path / "shared.py"
    script.write_text(SHARED.format(root=str(HERE.parents[2])))
    nccl = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "lo"}
    nccl["TORCH_CUDA_SANITIZER"] = sanitizer
    done = subprocess.run(
        [*torchrun_command(2, tmp_path / "logs"), str(script)], env=os.environ | nccl,
        capture_output=True, text=True, timeout=550, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


@one
def test_a_step_costs_the_host_no_more_than_torchs_own():
    """Prints the medians beside each other; what is asserted is only that both train."""
    ours, torchs = launch(host_seconds, world_size=1, device="cuda", timeout=400).returns[0]
    print(f"host seconds of a step of 200 parameters: ours {ours:.4f}, torch's DDP {torchs:.4f}", file=sys.stderr)
    assert min(ours, torchs) > 0


def host_seconds():
    import statistics
    import time

    from ringzero.data_parallel import DistributedDataParallel

    took = {}
    for name, wrap in {"ours": DistributedDataParallel, "torchs": torch.nn.parallel.DistributedDataParallel}.items():
        net = wrap(torch.nn.Sequential(*[torch.nn.Linear(768, 768) for _ in range(100)]))
        x, seconds = torch.randn(8, 768), []
        for _ in range(20):
            torch.cuda.synchronize()
            start = time.perf_counter()
            net(x).sum().backward()
            seconds.append(time.perf_counter() - start)
            net.zero_grad()
        took[name] = statistics.median(seconds[5:])
    return took["ours"], took["torchs"]


def test_every_algorithm_here_is_one_of_those_by_nccls_rules():
    """Both lists come from one place, so a new algorithm is tried on both."""
    import ringzero.collectives as collectives

    found = launch(every_algorithm, (60,), world_size=2, device="strict").returns[0]
    assert {name for collective, name, _ in found if collective == "all_reduce"} == {
        *collectives.ALGORITHMS["all_reduce"]
    }
