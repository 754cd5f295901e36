"""Homes of the optimizer's states: host and files, beside the same model with all on the device. Bit for bit."""

import copy
import os
import re
import resource
import signal
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from torch import nn

from ringzero import RankError, launch
from ringzero.costs import tiers
from ringzero.measure import disk
from ringzero.record.memory import MemoryTimeline
from ringzero.zero import STAGES, File, GradScaler, Host, ZeroPlusPlus, ZeroStage2, ZeroStage3, load, resident, save
from ringzero.zero.records import ALIGNMENT, Records, aligned_memory
from tests import awkward
from tests.zero.test_zero import sharded, step_sharded
from tests.zero.test_zero_checkpoint import equal

STEPS = 4


def homes(folder):
    """``{name: (a home, the stages it is for)}``."""
    return {
        "host": (Host, (1, 2, 3)),
        "host, parameters": (lambda: Host(parameters=True), (3,)),
        "host, slow link": (lambda: Host(bytes_per_second=1e9), (2,)),
        "file": (lambda: File(folder), (1, 2, 3)),
        "file, parameters": (lambda: File(folder, parameters=True), (3,)),
    }


def new_folder(parent):
    """The same one on every rank."""
    made = [os.path.join(parent, str(len(os.listdir(parent)))) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(made)
    os.makedirs(made[0], exist_ok=True)
    return made[0]


def trained(stage, name, home, **options):
    model = sharded(stage, name, home=home, **options)
    norms = [step_sharded(model, step) for step in range(STEPS)]
    return {**model.state_dict(), "norms": torch.stack(norms)}, model.optimizer_state_dict()


def everywhere(parent, models):
    """Which home, stage and model differ from the same with all on the device."""
    differ = []
    for name in models:
        for stage in STAGES:
            expected, expected_states = trained(stage, name, None)
            for home, (make, stages) in homes(new_folder(parent)).items():
                if stage in stages:
                    given = make()
                    if isinstance(given, File):
                        given.folder = Path(new_folder(parent))
                    got, states = trained(stage, name, given)
                    if not equal([dict(got), states], [dict(expected), expected_states]):
                        differ.append((name, stage, home))
    return differ


@pytest.mark.parametrize(
    ("world_size", "device", "models"),
    [(1, "cpu", ["Frozen"]), (2, "strict", ["OddSizes"]), (3, "cpu", ["Unused", "MixedTypes"])],
)
def test_every_home_trains_as_the_device_bit_for_bit(world_size, device, models, tmp_path):
    ranks = launch(everywhere, str(tmp_path), models, world_size=world_size, device=device, timeout=300)
    assert ranks.returns == [[]] * world_size


def in_lower_precision(parent):
    results = {}
    for dtype in (torch.bfloat16, torch.float16):
        for home in (Host, lambda: Host(parameters=True), lambda: File(new_folder(parent), parameters=True), None):
            torch.manual_seed(0)
            module = nn.Sequential(*(nn.Linear(9, 9) for _ in range(3)))
            model = ZeroStage3(
                module, torch.optim.AdamW, lr=0.01, units=list(module), mixed_precision=dtype, home=home and home()
            )
            scaler = GradScaler("cpu", init_scale=2.0**14, growth_interval=2, enabled=dtype is torch.float16)
            for step in range(6):
                torch.manual_seed(10 * step + dist.get_rank())
                scaler.scale(model(torch.randn(4, 9)).float().square().mean()).backward()
                scaler.unscale_(model) if scaler.is_enabled() else None
                model.clip_grad_norm_(0.5)
                scaler.step(model) if scaler.is_enabled() else model.step()
                scaler.update()
                model.zero_grad()
            results.setdefault(str(dtype), []).append(
                torch.cat([value.reshape(-1) for value in model.state_dict().values()])
            )
    return results


def test_lower_precision_and_loss_scaling_are_the_same_in_every_home(tmp_path):
    for results in launch(in_lower_precision, str(tmp_path), world_size=2).returns:
        for got in results.values():
            assert all(torch.equal(each, got[-1]) for each in got)


class Slow(torch.optim.AdamW):
    """The next step is asked for long before this one is done."""

    @torch.no_grad()
    def step(self):
        time.sleep(0.02)
        super().step()


def stepping_late(optimizer):
    """``Host(delayed=True)`` beside a loop that uses each gradient one step later, and both beside plain training."""
    torch.manual_seed(0)
    module = awkward.mlp()
    plain, never = copy.deepcopy(module), copy.deepcopy(module)
    home = Host(delayed=True)
    model = ZeroStage2(module, optimizer, lr=0.05, home=home, elementwise=True, bucket_cap_mb=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(model.optimizer, 2, 0.5)
    stepped = torch.optim.AdamW(plain.parameters(), lr=0.05)
    stepped_schedule = torch.optim.lr_scheduler.StepLR(stepped, 2, 0.5)
    at_once = torch.optim.AdamW(never.parameters(), lr=0.05)
    differ = []
    used = copy.deepcopy(plain)  # what passes compute with: one step behind ``plain``
    for step in range(6):
        torch.manual_seed(step)
        batch = torch.randn(4, 8)
        for each in (model, used, never):
            each(batch).square().mean().backward()
        ours = torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()])
        theirs = torch.cat([parameter.detach().reshape(-1) for parameter in used.parameters()])
        differ.append(not torch.equal(ours, theirs))
        gradients = [parameter.grad.clone() for parameter in used.parameters()]
        used = copy.deepcopy(plain)  # what the step before made
        for parameter, gradient in zip(plain.parameters(), gradients, strict=True):
            parameter.grad = gradient
        stepped.step()
        at_once.step()
        stepped_schedule.step()
        model.step()
        scheduler.step()
        model.zero_grad()
        used.zero_grad()
        never.zero_grad()
    whole = model.state_dict()  # waits for the last step
    same = all(torch.equal(whole[name], value) for name, value in plain.state_dict().items())
    other = any(not torch.equal(whole[name], value) for name, value in never.state_dict().items())
    return differ, same, other


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, Slow])
def test_a_delayed_step_uses_parameters_one_step_older_and_nothing_else(optimizer):
    assert launch(stepping_late, optimizer, world_size=1).returns == [([False] * 6, True, True)]


def written_whole(make):
    """Masters before and after one number was written in ``whole_parameters``, and what was read there in the end."""
    torch.manual_seed(0)
    module = nn.Sequential(*(nn.Linear(8, 8, bias=False) for _ in range(3)))
    model = ZeroStage3(module, torch.optim.AdamW, lr=0.05, units=list(module), **make())
    for step in range(3):
        torch.manual_seed(step)
        model(torch.randn(4, 8)).square().mean().backward()
        model.step()
        model.zero_grad()
    before = model.state_dict()
    with model.whole_parameters(write=True), torch.no_grad():
        module[1].weight[2, 3] = 5.0
    after = model.state_dict()
    return before, after


@pytest.mark.parametrize("how", ["device", "delayed", "file", "fewer bits"])
def test_writing_a_number_whole_leaves_all_others_as_they_are_stepped(how, tmp_path):
    """Also where what is computed with is not what is stepped: older by a step, or rounded."""
    make = {
        "device": dict,
        "delayed": lambda: {"home": Host(delayed=True)},
        "file": lambda: {"home": File(tmp_path, parameters=True)},
        "fewer bits": lambda: {"travel": ZeroPlusPlus(ranks_per_node=1)},
    }[how]
    for before, after in launch(written_whole, make, world_size=2).returns:
        before["1.weight"][2, 3] = 5.0
        assert equal(dict(after), dict(before))


# ---- bytes


def held(parent, stage, parameters, states, dtype):
    width, layers = 64, 4
    module = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(layers)))
    home = {"device": lambda: None, "host": lambda: Host(parameters=parameters),
            "file": lambda: File(new_folder(parent), parameters=parameters)}[states]()  # fmt: skip
    cut = {"units": list(module)} if stage == 3 else {"bucket_cap_mb": 1e-3}
    model = STAGES[stage](module, torch.optim.AdamW, lr=0.01, mixed_precision=dtype, home=home, **cut)
    for _ in range(2):
        model(torch.randn(2, width)).float().square().mean().backward()
        before = resident(model)
        model.step()
    after = resident(model)
    file = sum(os.path.getsize(path) for path in Path(home.folder).glob("*.bin")) if states == "file" else 0
    return before, after, file / dist.get_world_size(), max(v.owned.stop - v.owned.start for v in model.vectors())


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
@pytest.mark.parametrize(("states", "parameters"), [("host", False), ("host", True), ("file", False), ("file", True)])
def test_bytes_in_each_tier_are_those_of_the_formula(states, parameters, dtype, tmp_path):
    elements, ranks, layers = 64 * 64 * 4, 2, 4
    each = (4, 4, 8) if dtype is None else (2, 2, 12)
    for before, _after, file, largest in launch(
        held, str(tmp_path), 3, parameters, states, dtype, world_size=ranks
    ).returns:
        shards = [elements // layers // ranks] * layers
        device, host, disk = tiers.tier_bytes(
            shards, states=states, parameters=states if parameters else "device", each=each
        )
        assert before == {"device": device, "host": host, "file": disk}
        assert largest == elements // layers // ranks
        assert (file > disk) == (states == "file")  # its headers


def within_a_budget(folder):
    """A model in files: peak bytes of all tensors in a step, beside its states' bytes and a whole forward's."""
    module = nn.Sequential(*(nn.Linear(256, 256, bias=False) for _ in range(96)))
    states = 12 * sum(parameter.numel() for parameter in module.parameters())  # masters and two numbers of Adam's
    model = ZeroStage3(
        module, torch.optim.AdamW, lr=1e-3, units=list(module), mixed_precision=torch.bfloat16,
        home=File(folder, parameters=True),
    )  # fmt: skip

    def step(mark=lambda name: None):
        model(torch.randn(4, 256)).float().square().mean().backward()
        mark("backward")
        model.step()
        model.zero_grad()

    for _ in range(2):
        step()
    with MemoryTimeline(module, model.optimizer) as timeline:
        step(timeline.mark)
    return states, timeline.peak().total


def test_a_model_with_states_of_four_times_the_memory_trains_within_it(tmp_path):
    ((states, peak),) = launch(within_a_budget, str(tmp_path), world_size=1).returns
    assert states > 4 * peak


class Numbers(nn.Module):
    """A layer of any number of parameters."""

    def __init__(self, numel):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(numel))

    def forward(self, x):
        return x * self.weight.mean()


def at_the_edge(folder, layer, layers, states, parameters, host_bytes):
    """The most bytes in each tier while a model trains that has ``layers`` layers of ``layer`` parameters."""
    module = nn.Sequential(*(Numbers(layer) for _ in range(layers)))
    elsewhere = parameters != "device"
    home = {"device": lambda: None, "host": lambda: Host(parameters=elsewhere, memory_bytes=host_bytes),
            "file": lambda: File(folder, parameters=elsewhere)}[states]()  # fmt: skip
    model = ZeroStage3(
        module, torch.optim.AdamW, units=list(module), mixed_precision=torch.bfloat16, home=home, window=1
    )
    most = dict.fromkeys(("device", "host", "file"), 0)

    def look(*_):
        for tier, held_now in resident(model).items():
            most[tier] = max(most[tier], held_now)

    for unit in module:
        unit.register_forward_pre_hook(look)
    for _ in range(2):  # in the second forward pass there are gradients of the first, and states
        loss = model(torch.ones(2)).float().sum()
        model.zero_grad()  # otherwise two passes would add up, in the masters' type
        loss.backward()
        look()
        model.step()
    return most


DEVICE, HOST, DISK, LAYERS = 400_000, 1_500_000, 3_000_000, 6


@pytest.mark.parametrize(
    ("states", "parameters"), [("device", "device"), ("host", "device"), ("host", "host"), ("file", "file")]
)
def test_the_largest_model_is_as_predicted(states, parameters, tmp_path):
    """At the edge it fits every tier, and with a few more parameters in each layer it does not fit one of them."""
    budget = {"device": DEVICE, "host": HOST, "file": DISK}
    params, limit = tiers.largest_model(DEVICE, HOST, DISK, LAYERS, window=1, states=states, parameters=parameters)
    layer = params // LAYERS
    arguments = LAYERS, states, parameters, HOST
    (fits,) = launch(at_the_edge, str(_made(tmp_path / "fits")), layer, *arguments, world_size=1).returns
    assert all(fits[tier] <= budget[tier] for tier in budget), (fits, params)
    if limit == "host" and states == "host":
        with pytest.raises(RankError, match="of host memory"):
            launch(at_the_edge, str(tmp_path), layer + 1, *arguments, world_size=1)
    else:
        (more,) = launch(at_the_edge, str(_made(tmp_path / "more")), layer + 1, *arguments, world_size=1).returns
        assert more[limit] > budget[limit], (more, params)


# ---- a window of layers


def windows():
    most = {}
    for window in (1, 2, 3, 5):
        module = nn.Sequential(*(nn.Linear(8, 8) for _ in range(5)))
        model = ZeroStage3(
            module, torch.optim.SGD, lr=0.1, units=list(module), home=Host(parameters=True), window=window
        )
        seen = []

        def look(*_, model=model, seen=seen):
            seen.append(sum(vector.whole.untyped_storage().nbytes() > 0 for vector in model.vectors()))

        for unit in module:
            unit.register_forward_pre_hook(look)
            unit.register_full_backward_hook(look)
        model(torch.randn(2, 8, requires_grad=True)).sum().backward()
        model.step()
        most[window] = max(seen)
    return most


def test_a_window_of_k_layers_has_k_layers_at_a_time():
    for most in launch(windows, world_size=2).returns:
        assert most == {1: 1, 2: 2, 3: 3, 5: 5}


# ---- files: killed, full, resumed, of another model


def killed(folder, kill_at, resumed):
    """Train with states in files; one write of a step kills this rank. Returns the model's values after each step."""
    dist_rank, values = dist.get_rank(), []
    torch.manual_seed(0)
    module = awkward.mlp(width=40)
    written = 0
    if kill_at is not None and dist_rank == kill_at[0]:
        real = Records.write

        def write(self, *args):
            nonlocal written
            written += 1
            if written == kill_at[1]:
                torn = aligned_memory(args[2].numel()).fill_(255)[:ALIGNMENT]  # not all, and wrong
                os.pwritev(self._file, [torn.numpy()], self._place(*args[:2]))
                os.kill(os.getpid(), signal.SIGKILL)
            real(self, *args)

        Records.write = write
    home = File(folder, resume=resumed)
    model = ZeroStage3(module, torch.optim.AdamW, lr=0.01, units=list(module), home=home)
    values.append((home.steps, model.state_dict()))
    for step in range(home.steps, 4):
        torch.manual_seed(100 * step + dist_rank)
        model(torch.randn(4, 40)).square().mean().backward()
        model.step()
        model.zero_grad()
        values.append((home.steps, model.state_dict()))
    return values


def test_whoever_is_killed_while_writing_finds_the_last_complete_step(tmp_path, request):
    """Each rank writes 5 records at the beginning and in each of 4 steps, and one is killed at one of the steps'."""
    whole = launch(killed, str(_made(tmp_path / "whole")), None, False, world_size=2).returns[0]
    for kill in range(3 + request.config.getoption("--seeds")):
        rank, at = kill % 2, 6 + kill * 7 % 20
        folder = _made(tmp_path / str(kill))
        with pytest.raises(RankError):
            launch(killed, str(folder), (rank, at), False, world_size=2)
        values = launch(killed, str(folder), None, True, world_size=2).returns
        for of_rank in values:
            steps, _ = of_rank[0]
            assert steps == (at - 6) // 5, at
            assert [number for number, _ in of_rank] == list(range(steps, 5))
            for number, state in of_rank:
                assert all(torch.equal(state[key], whole[number][1][key]) for key in state), (at, number)


def _made(folder):
    folder.mkdir()
    return folder


def full_disk(folder, limited_rank):
    """A step in which one rank's file may not grow any more, as on a full disk; then there is room again."""
    torch.manual_seed(0)
    module = awkward.mlp(width=40)
    model = ZeroStage3(module, torch.optim.AdamW, lr=0.01, units=list(module), home=File(folder, parameters=True))
    told = []
    for step in range(3):
        torch.manual_seed(step)
        model(torch.randn(4, 40)).square().mean().backward()
        before = model.state_dict()
        if step == 1 and dist.get_rank() == limited_rank:
            real = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (3 * ALIGNMENT, real[1]))
        try:
            model.step()
        except OSError as error:
            told.append((step, str(error)))
            after = model.state_dict()
            assert all(torch.equal(after[key], before[key]) for key in before)
            if dist.get_rank() == limited_rank:
                resource.setrlimit(resource.RLIMIT_FSIZE, real)
            model.step()
        model.zero_grad()
    got = model.state_dict()
    torch.manual_seed(0)
    module = awkward.mlp(width=40)
    other = ZeroStage3(module, torch.optim.AdamW, lr=0.01, units=list(module))
    for step in range(3):
        torch.manual_seed(step)
        other(torch.randn(4, 40)).square().mean().backward()
        other.step()
        other.zero_grad()
    expected = other.state_dict()
    return told, all(torch.equal(got[key], expected[key]) for key in expected), model.home.steps


@pytest.mark.parametrize("limited_rank", [0, 1])
def test_a_disk_that_is_full_in_the_middle_of_a_step_loses_nothing(limited_rank, tmp_path):
    for told, same, steps in launch(full_disk, str(tmp_path), limited_rank, world_size=2).returns:
        ((step, sentence),) = told
        assert step == 1
        assert f"rank {limited_rank}: [Errno" in sentence
        assert "step 2 was undone on every rank" in sentence
        assert same
        assert steps == 3


def refused(folder, case):
    module = awkward.mlp(width=40)
    make = {"units": list(module)}
    if case == "missing":
        folder = os.path.join(folder, "not", "there")
    elif case == "full" and dist.get_rank() == 1:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # what groups write to their store is less
    elif case == "read-only" and dist.get_rank() == 0:
        real = os.access
        os.access = lambda path, mode: str(path) != folder and real(path, mode)
    elif case == "another model":
        ZeroStage3(awkward.mlp(width=40, layers=3), torch.optim.AdamW, home=File(folder))
        dist.barrier()
    elif case in ("in use", "another optimizer"):
        ZeroStage3(module, torch.optim.AdamW, home=File(folder), **make)
        dist.barrier()
    module = awkward.mlp(width=40)
    make["units"] = list(module)
    kind = torch.optim.SGD if case == "another optimizer" else torch.optim.AdamW
    files = sorted((path.name, path.stat().st_mtime_ns) for path in Path(folder).glob("*"))
    home = File(folder, resume=case not in ("missing", "full", "read-only", "in use"))
    with pytest.raises((OSError, ValueError)) as told:
        ZeroStage3(module, kind, lr=0.1, home=home, **make)
    dist.barrier()  # what another rank made is gone, too
    assert files == sorted((path.name, path.stat().st_mtime_ns) for path in Path(folder).glob("*"))
    return str(told.value)


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("missing", "is no folder; make it before"),
        ("full", "rank 1: .* needs .* bytes, and .* are free there"),
        ("read-only", "rank 0: .* cannot be written to"),
        ("in use", "has states; take them over with resume=True, or remove them"),
        ("nothing", "has no states of rank 0 of 2 to resume"),
        ("another model", "the state does not fit this model"),
        ("another optimizer", "the state does not fit this model"),
    ],
)
def test_a_folder_that_cannot_serve_is_refused_before_training_and_nothing_is_overwritten(case, sentence, tmp_path):
    for told in launch(refused, str(tmp_path), case, world_size=2).returns:
        assert re.search(sentence, told), told


def other_refusals():
    told = {}

    def refuse(name, make):
        with pytest.raises((ValueError, MemoryError)) as caught:
            make()
        told[name] = f"{type(caught.value).__name__}: {caught.value}"

    def model(stage=3, **options):
        module = awkward.mlp()
        extra = {"units": list(module)} if stage == 3 else {}
        return STAGES[stage](module, torch.optim.AdamW, **extra, **options)

    small = 1000.0 if dist.get_rank() == 1 else 1e9
    refuse("memory", lambda: model(home=Host(memory_bytes=small)))
    refuse("no memory", lambda: Host(memory_bytes=0))
    refuse("link", lambda: Host(bytes_per_second=-1))
    refuse("stage", lambda: model(2, home=Host(parameters=True)))
    refuse("window 0", lambda: model(window=0))
    refuse("window 5", lambda: model(window=5))
    home = Host()
    model(home=home)
    refuse("twice", lambda: model(home=home))
    unscaled = model(mixed_precision=torch.float16)
    unscaled(torch.randn(2, 8)).float().sum().backward()
    with pytest.raises(RuntimeError) as caught:
        unscaled.step()
    told["float16"] = str(caught.value)
    return told


def test_what_cannot_be_is_refused_with_the_value_and_the_fix():
    for told in launch(other_refusals, world_size=2).returns:
        assert "MemoryError: rank 1 needs 2.3e-06 GB of host memory" in told["memory"]
        assert "may take 1e-06 GB" in told["memory"]
        assert "memory_bytes is 0" in told["no memory"]
        assert "bytes_per_second is -1" in told["link"]
        assert "ZeroStage2 has them whole" in told["stage"]
        assert "window is 0, and there are 4 units; give 1 to 4" in told["window 0"]
        assert "window is 5" in told["window 5"]
        assert "belongs to another model already" in told["twice"]
        assert "Take zero.GradScaler" in told["float16"]


def across_tiers(folder):
    """A checkpoint of each home, loaded in each other one; each goes on as the one that was never saved."""
    makers = {
        "device": lambda: None,
        "host": Host,
        "delayed": None,
        "parameters": lambda: Host(parameters=True),
        "file": lambda: File(new_folder(folder)),
    }
    del makers["delayed"]
    results = {}

    def model_in(home):
        module = awkward.mlp(dist.get_rank())
        return ZeroStage3(module, torch.optim.AdamW, lr=0.01, units=list(module), home=home)

    def go_on(model, steps):
        for step in steps:
            torch.manual_seed(10 * step + dist.get_rank())
            model(torch.randn(4, 8)).square().mean().backward()
            model.step()
            model.zero_grad()
        return torch.cat([value.reshape(-1) for value in model.state_dict().values()])

    torch.manual_seed(0)
    for source, target in pairwise([*makers, "device"]):
        model = model_in(makers[source]())
        go_on(model, range(2))
        kept = new_folder(folder)
        save(model, kept, extra=source)
        expected = go_on(model, range(2, 4))
        other = model_in(makers[target]())
        assert load(other, kept) == source
        whole = model_in(makers[target]())
        whole.load_state_dict(other.state_dict())
        whole.load_optimizer_state_dict(other.optimizer_state_dict())
        results[source, target] = all(torch.equal(go_on(each, range(2, 4)), expected) for each in (other, whole))
    return results


def test_a_checkpoint_of_one_tier_goes_on_in_another(tmp_path):
    for results in launch(across_tiers, str(tmp_path), world_size=2).returns:
        assert len(results) == 4
        assert all(results.values()), results


def adding(home_of):
    """A layer that is unfrozen: what was said, and whether the model goes on as before."""
    torch.manual_seed(0)
    module = awkward.mlp(layers=2)
    module[1].requires_grad_(False)
    model = ZeroStage2(module, torch.optim.SGD, lr=0.1, home=home_of())
    module[1].requires_grad_(True)
    told = ""
    try:
        model.add_param_group({"params": list(module[1].parameters())})
    except ValueError as error:
        told = str(error)
        module[1].requires_grad_(False)
    before = module[1].weight.detach().clone()
    model(torch.randn(2, 8)).sum().backward()
    model.step()
    return told, torch.equal(module[1].weight, before)


def test_parameters_may_be_added_on_the_host_and_not_in_files(tmp_path):
    for told, stayed in launch(adding, Host, world_size=2).returns:
        assert not told
        assert not stayed
    for told, stayed in launch(adding, lambda: File(tmp_path), world_size=2).returns:
        assert "takes no more parameters" in told
        assert stayed  # and it goes on


def test_a_file_of_records_without_what_only_linux_has(tmp_path, monkeypatch):
    for name in ("O_DIRECT", "posix_fallocate", "fdatasync"):
        monkeypatch.delattr(os, name, raising=False)
    file = Records(tmp_path / "states", [ALIGNMENT, 2 * ALIGNMENT], header_bytes=100)
    file.create()
    source = aligned_memory(2 * ALIGNMENT).fill_(7)
    file.write(1, 3, source)
    file.sync()
    file.commit(3, {"step": 5})
    found = aligned_memory(2 * ALIGNMENT)
    file.read(1, 3, found)
    assert torch.equal(found, source)
    assert file.headers() == {3: {"step": 5}}
    assert set(disk.rates(tmp_path, nbytes=2**22, repeat=1)) == {"read", "write", "both"}


def test_records_find_the_last_whole_generation(tmp_path):
    records = Records(tmp_path / "file", [ALIGNMENT, 2 * ALIGNMENT], 100)
    records.create()
    assert records.headers() == {}
    for generation in range(3):
        for record, size in enumerate(records.sizes):
            memory = aligned_memory(size)
            records.write(record, generation, memory.fill_(10 * generation + record))
        records.commit(generation, {"of": generation})
    assert records.headers() == {1: {"of": 1}, 2: {"of": 2}}
    memory = aligned_memory(2 * ALIGNMENT)
    records.read(1, 1, memory)
    assert (memory == 11).all()
    records.read(1, 2, memory)
    assert (memory == 21).all()
    assert (records.read_part(1, 2, ALIGNMENT - 3, ALIGNMENT + 5) == 21).all()
    with open(tmp_path / "file", "r+b") as file:  # a header that was torn
        file.seek(20)
        file.write(b"x")
    assert records.headers() == {1: {"of": 1}}
    records.forget(1)
    assert records.headers() == {}


# ---- on a GPU, whose group sends from there alone


def test_a_shard_on_the_host_is_gathered_where_the_group_sends(monkeypatch):
    """NCCL has no way for what lies on the host. No GPU is needed to see which way it goes."""
    from ringzero.zero import state

    went = []

    def gathered(tensor, group):
        went.append(tensor.device.type)
        return torch.zeros(tensor.shape)

    monkeypatch.setattr(state, "device_of", lambda group: torch.device("meta"))
    monkeypatch.setattr(state, "all_gather", gathered)
    layout = SimpleNamespace(numel=6, owner=None, views=lambda whole: {"weight": whole})
    vector = SimpleNamespace(layout=layout, owned=slice(2, 4), group=None)
    assert state.whole(vector, torch.ones(2))["weight"].device.type == "cpu"
    assert went == ["meta"]
