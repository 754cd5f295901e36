"""A parameter server beside one process on the whole batch; asynchronous training beside its own log, replayed."""

import contextlib
import math
import os
import random
import signal
import threading
import time
from collections import Counter, defaultdict

import pytest
import torch
import torch.distributed as dist

from ringzero import RankError, launch
from ringzero.costs import server as costs
from ringzero.unsynced import parameter_server
from ringzero.unsynced.by_collectives import ServedByCollectives
from ringzero.unsynced.line import HEAD_BYTES, Line, through_the_host
from ringzero.unsynced.parameter_server import ParameterServer
from ringzero.unsynced.rules import BoundedStaleness, Served, Synchronous, Workers
from ringzero.unsynced.slices import cut
from tests import awkward

STEPS, SAMPLES = 6, 24


def tokens(step):
    return torch.randint(10, (SAMPLES, 6), generator=torch.Generator().manual_seed(step))


def loss_of(model, step, worker, workers):
    return model(tokens(step)[worker::workers]).square().mean()


def flat(module):
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])


def train(kind, rule, options, steps=STEPS, late=None, dies=None):
    """On each rank: ``{"parameters", "logs": {slice: log}, "dropped", "error"}``.

    ``late`` is ``(worker, seconds)`` that it loses in each step, ``dies`` ``(rank, step or seconds)``.
    """
    torch.manual_seed(dist.get_rank())
    module = kind()
    server = ParameterServer(module, torch.optim.SGD, lr=0.1, momentum=0.9, rule=rule, **options)
    if dies and dies[0] == server.rank and isinstance(dies[1], float):
        threading.Timer(dies[1], os.kill, (os.getpid(), signal.SIGKILL)).start()
    error = None
    try:
        if server.rank not in server.workers:
            server.serve()
        else:
            worker = server.workers.index(server.rank)
            for step in range(steps):
                if dies == (server.rank, step):
                    os.kill(os.getpid(), signal.SIGKILL)
                if late and late[0] == worker:
                    time.sleep(late[1])
                loss_of(server, step, worker, len(server.workers)).backward()
                server.step()
                server.zero_grad()
            server.finish()
    except RuntimeError as raised:
        error = str(raised)
    logs = {number: served.log for number, served in server.server.served.items()} if server.server else {}
    return {"parameters": flat(module), "logs": logs, "dropped": server.rule.dropped, "error": error}


def alone(kind, steps=STEPS, workers=1):
    """One process with the whole batch."""
    torch.manual_seed(0)
    model = kind()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(steps):
        loss_of(model, step, 0, 1).backward()
        optimizer.step()
        optimizer.zero_grad()
    return flat(model)


SYNCHRONOUS = [
    (1, {}),
    (2, {"servers": 2}),
    (3, {"servers": 2, "slice_bytes": 40}),
    (4, {"dedicated": True, "overlap": True, "slice_bytes": 60}),
    (4, {"servers": 4, "overlap": True, "first_needed_first": True, "slice_bytes": 100}),
    (5, {"servers": 3, "dedicated": True}),
]


@pytest.mark.parametrize("kind", [awkward.OddSizes, awkward.Tied, awkward.Frozen], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(("ranks", "options"), SYNCHRONOUS, ids=str)
def test_synchronous_workers_train_as_one_process(ranks, options, kind):
    """Within rounding: gradients are added in the order in which they come."""
    if SAMPLES % (ranks - options.get("servers", 1) * options.get("dedicated", 0)):
        pytest.skip("shares of different sizes have another mean")
    returned = launch(train, kind, Synchronous(), options, world_size=ranks).returns
    for each in returned:
        torch.testing.assert_close(each["parameters"], alone(kind))
        assert torch.equal(each["parameters"], returned[0]["parameters"])


@pytest.mark.parametrize(("ranks", "options"), SYNCHRONOUS, ids=str)
def test_each_rank_sends_what_the_formula_says(ranks, options):
    def sent(steps):
        trace = launch(train, awkward.OddSizes, Synchronous(), options, steps, world_size=ranks, trace=True).trace
        counted = [0] * ranks
        for each in trace:
            counted[each.rank] += each.bytes * (each.kind == "send")
        return counted

    sizes = costs.slice_sizes(
        sum(p.numel() for p in awkward.OddSizes().parameters()),
        options.get("servers", 1),
        options.get("slice_bytes", math.inf),
    )
    formula = costs.exchanged_bytes(sizes, ranks, options.get("servers", 1), options.get("dedicated", False), steps=3)
    assert HEAD_BYTES == costs.HEADER
    assert [more - less for more, less in zip(sent(4), sent(1), strict=True)] == [out for out, _ in formula]


def test_slices_cover_everything_and_each_server_has_some():
    for elements, servers in ((1, 1), (10, 3), (7, 7), (1000, 4)):
        slices = cut(elements, 4, servers, 64)
        assert [each.start for each in slices] == [0, *(each.stop for each in slices[:-1])]
        assert slices[-1].stop == elements
        assert {each.server for each in slices} == set(range(servers))
        assert all(each.stop - each.start <= 16 for each in slices)


def replayed(kind, log, workers):
    """One process that takes the steps of a server's log: each gradient on the version that its worker had."""
    torch.manual_seed(0)
    model = kind()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    versions, taken = [[p.detach().clone() for p in model.parameters()]], Counter()
    for worker, based_on in log:
        now = [p.detach().clone() for p in model.parameters()]
        for parameter, old in zip(model.parameters(), versions[based_on], strict=True):
            parameter.data.copy_(old)
        loss_of(model, taken[worker], worker, workers).backward()
        taken[worker] += 1
        for parameter, newest in zip(model.parameters(), now, strict=True):
            parameter.data.copy_(newest)
            parameter.grad /= workers
        optimizer.step()
        optimizer.zero_grad()
        versions.append([p.detach().clone() for p in model.parameters()])
    return flat(model)


def test_asynchronous_training_is_what_its_log_says():
    """Bit for bit: the same gradients on the same versions, in the same order."""
    ranks = launch(train, awkward.OddSizes, BoundedStaleness(), {}, STEPS, (2, 0.02), world_size=4)
    log = ranks.returns[0]["logs"][0]
    assert Counter(worker for worker, _ in log) == dict.fromkeys(range(4), STEPS)
    assert max(version - based_on for version, (_, based_on) in enumerate(log)) > 3  # stale ones there are
    for each in ranks.returns:
        assert torch.equal(each["parameters"], replayed(awkward.OddSizes, log, 4))


@pytest.mark.parametrize("bound", [0, 2, math.inf])
def test_nobody_gets_further_ahead_than_the_bound(bound):
    ranks = launch(train, awkward.OddSizes, BoundedStaleness(bound), {}, 12, (1, 0.03), world_size=3)
    pushed, furthest = Counter(), 0
    for worker, _ in ranks.returns[0]["logs"][0]:
        pushed[worker] += 1
        furthest = max(furthest, pushed[worker] - min(pushed[each] for each in range(3)))
    assert furthest == bound + 1 if bound < math.inf else furthest > 3


def test_backup_workers_are_not_waited_for():
    ranks = launch(train, awkward.OddSizes, Synchronous(backup=1), {}, 10, (2, 0.05), world_size=4)
    logs, dropped = ranks.returns[0]["logs"][0], ranks.returns[0]["dropped"]
    came = defaultdict(set)
    for worker, version in logs:
        came[version].add(worker)
    assert dropped > 0
    assert all(len(workers) == 3 for version, workers in came.items() if version < 5)  # nobody has ended yet
    assert all(torch.equal(each["parameters"], ranks.returns[0]["parameters"]) for each in ranks.returns)


def test_the_synchronous_server_says_who_is_missing(tmp_path):
    options = {"folder": tmp_path, "save_every": 2}
    ranks = launch(train, awkward.OddSizes, Synchronous(), options, STEPS, None, (2, 4), world_size=4, may_lose=True)
    assert ranks.lost == [2]
    for rank in (0, 1, 3):
        assert "worker 2 is gone, and Synchronous(backup=0) cannot go on" in ranks.returns[rank]["error"]
        assert str(tmp_path) in ranks.returns[rank]["error"]


def test_a_server_that_only_serves_says_so_too():
    options = {"dedicated": True}
    ranks = launch(train, awkward.OddSizes, Synchronous(), options, STEPS, None, (2, 4), world_size=4, may_lose=True)
    for rank in (0, 1, 3):
        assert "worker 2 is gone, and Synchronous(backup=0) cannot go on" in ranks.returns[rank]["error"]


def test_a_backup_worker_stands_in_for_one_that_is_lost():
    rule = Synchronous(backup=1)
    ranks = launch(train, awkward.OddSizes, rule, {}, STEPS, None, (2, 3), world_size=4, may_lose=True)
    assert [ranks.returns[rank]["error"] for rank in (0, 1, 3)] == [None] * 3


def test_the_only_server_lost_ends_the_run_and_its_last_state_goes_on(tmp_path):
    options = {"folder": tmp_path, "save_every": 2}
    lost = launch(train, awkward.OddSizes, Synchronous(), options, STEPS, None, (0, 4), world_size=2, may_lose=True)
    assert lost.lost == [0]
    assert "server 0 is gone" in lost.returns[1]["error"]
    assert str(tmp_path) in lost.returns[1]["error"]

    resumed = launch(go_on, tmp_path, 4, {}, world_size=2).returns
    for parameters in resumed:
        torch.testing.assert_close(parameters, alone(awkward.OddSizes))


def go_on(folder, done, options):
    torch.manual_seed(dist.get_rank())
    module = awkward.OddSizes()
    server = ParameterServer(module, torch.optim.SGD, lr=0.1, momentum=0.9, folder=folder, resume=True, **options)
    if server.rank in server.workers:
        for step in range(done, STEPS):
            loss_of(server, step, server.workers.index(server.rank), len(server.workers)).backward()
            server.step()
            server.zero_grad()
        server.finish()
    else:
        server.serve()
    return flat(module)


@pytest.mark.parametrize("dedicated", [False, True])
def test_shares_of_several_servers_go_on(tmp_path, dedicated):
    """Each rank has all shares before its first step: those of other servers too."""
    ranks, options = 4 if dedicated else 3, {"servers": 2, "slice_bytes": 40, "dedicated": dedicated}
    saved = options | {"folder": tmp_path, "save_every": 2}
    launch(train, awkward.OddSizes, Synchronous(), saved, 4, world_size=ranks)
    for parameters in launch(go_on, tmp_path, 4, options, world_size=ranks).returns:
        torch.testing.assert_close(parameters, alone(awkward.OddSizes))


def test_asynchronous_training_survives_workers_killed_at_any_moment(request):
    """``--seeds K``: K kills. The survivors end, with what the log says, bit for bit."""
    for seed in range(2 * request.config.getoption("seeds")):
        draw = random.Random(seed)
        dies = draw.randrange(1, 4), draw.uniform(0.0, 0.3)
        rule = BoundedStaleness(draw.choice([0, 2, math.inf]))
        ranks = launch(train, awkward.OddSizes, rule, {}, 40, (3, 0.005), dies, world_size=4, may_lose=True)
        log = ranks.returns[0]["logs"][0]
        pushed = Counter(worker for worker, _ in log)
        assert all(pushed[rank] == 40 for rank in range(4) if rank not in ranks.lost), f"seed {seed}"
        expected = replayed(awkward.OddSizes, log, 4)
        for rank, each in enumerate(ranks.returns):
            if rank not in ranks.lost:
                assert each["error"] is None, f"seed {seed}"
                assert torch.equal(each["parameters"], expected), f"seed {seed}"


class FailsAtTheThird(torch.optim.SGD):
    """As an optimizer that cannot take a gradient, or a disk that is full."""

    steps = 0

    def step(self, *_):
        self.steps += 1
        if self.steps == 3:
            raise ValueError("no third step")
        super().step()


def train_with_a_server_that_fails(dedicated):
    server = ParameterServer(awkward.OddSizes(), FailsAtTheThird, lr=0.1, rule=BoundedStaleness(), dedicated=dedicated)
    try:
        if server.rank not in server.workers:
            server.serve()
        while server.rank in server.workers:
            loss_of(server, 0, server.rank, 3).backward()
            server.step()
            server.zero_grad()
    except RuntimeError as error:
        return f"{error} {error.__cause__!r}"


@pytest.mark.parametrize("dedicated", [False, True])
def test_a_server_that_fails_says_so_on_every_rank(dedicated):
    first, *others = launch(train_with_a_server_that_fails, dedicated, world_size=3, timeout=60).returns
    assert first == "the server on rank 0 failed: ValueError: no third step ValueError('no third step')"
    assert all("server 0 failed; its own error says why" in each for each in others)


def slow_in_the_constructor():
    """A message may come at any moment of the constructor: here all of them come between its last two lines."""
    lines = []

    class Late(Line):
        def __init__(self, peer, *parts):
            lines.append(peer)
            super().__init__(peer, *parts)
            time.sleep(0.2)

    parameter_server.Line = Late
    try:
        return train(awkward.OddSizes, BoundedStaleness(), {}), lines
    finally:
        parameter_server.Line = Line


def test_messages_wait_until_the_server_is_made():
    (returned, lines), *_ = launch(slow_in_the_constructor, world_size=4, timeout=60).returns
    assert lines == [1, 2, 3]
    assert returned["error"] is None


def line_to_a_dead_rank():
    """Rank 1 dies before rank 0 posts its first receive, which then raises at once."""
    group, lost = through_the_host(dist.group.WORLD), threading.Event()
    dist.barrier()
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with contextlib.suppress(RuntimeError):
        while True:  # until gloo has seen it
            dist.irecv(torch.empty(8), group_src=1, group=group)
            time.sleep(0.02)
    line = Line(1, group, 8, torch.float64, print, lost=lambda _: lost.set(), failed=print)
    line.open()
    return lost.wait(30)


def test_a_rank_that_died_before_the_line_was_open_is_lost():
    assert launch(line_to_a_dead_rank, world_size=2, may_lose=True, timeout=60).returns[0]


def say(texts):
    """Rank 0 says ``(priority, text)`` while rank 1 does not listen yet. Returns what came, in order."""
    group, came = through_the_host(dist.group.WORLD), []
    if dist.get_rank() == 1:
        time.sleep(0.3)
    arrived, error = lambda head, _: came.append(head[1]), came.append
    line = Line(1 - dist.get_rank(), group, 8, torch.float64, arrived, lost=error, failed=error)
    line.open()
    if dist.get_rank() == 0:
        for priority, text in texts:
            line.send((0, text, 0), torch.zeros(8, dtype=torch.float64), priority)
    line.close()
    return came


def test_the_most_urgent_message_leaves_first():
    """The first one is on its way when the others come: it may not be the most urgent."""
    texts = [(0, 10), (5, 15), (3, 13), (9, 19), (3, 14), (1, 11)]
    first, *others = launch(say, texts, world_size=2).returns[1]
    assert others == sorted({10, 11, 13, 14, 15, 19} - {first})


WRONG = {
    "servers is 3; with 2 ranks it is 1 to 2": {"servers": 3},
    "servers is 2; with 2 ranks, of which one at least must train, it is 1 to 1": {"servers": 2, "dedicated": True},
    "slice_bytes is 0": {"slice_bytes": 0},
    "slice_bytes is '1'; give a positive number": {"slice_bytes": "1"},
    "save_every is 0": {"save_every": 0},
    "save_every is 1.5; give the versions": {"save_every": 1.5},
    "resume=True needs the folder": {"resume": True},
}


@pytest.mark.parametrize("message", WRONG)
def test_what_cannot_be_is_refused(message):
    with pytest.raises(RankError, match=message):
        launch(train, awkward.OddSizes, None, WRONG[message], world_size=2)


def test_rules_refuse_what_cannot_be():
    with pytest.raises(ValueError, match="bound is -1; give the number of steps"):
        BoundedStaleness(-1)
    with pytest.raises(ValueError, match="backup is -2"):
        Synchronous(-2)
    with pytest.raises(ValueError, match="bound is '1'; give the number of steps"):
        BoundedStaleness("1")
    with pytest.raises(ValueError, match="backup is 0.5; give the number of workers"):
        Synchronous(0.5)


def twice():
    server = ParameterServer(torch.nn.Linear(2, 1), torch.optim.SGD, lr=0.1, overlap=True)
    for _ in range(2):
        server(torch.ones(1, 2)).sum().backward()


def sparse():
    module = torch.nn.Embedding(4, 2, sparse=True)
    server = ParameterServer(module, torch.optim.SGD, lr=0.1)
    server(torch.tensor([1])).sum().backward()
    server.step()


def two_types():
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2, dtype=torch.float64))
    ParameterServer(module, torch.optim.SGD, lr=0.1)


def nothing_used():
    module = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)])
    server = ParameterServer(module, torch.optim.SGD, lr=0.1)
    module[0](torch.ones(2)).sum().backward()
    server.step()


def loaded():
    module = torch.nn.Linear(2, 2)
    server = ParameterServer(module, torch.optim.SGD, lr=0.1)
    module.load_state_dict(torch.nn.Linear(2, 2).state_dict())
    server(torch.ones(2)).sum().backward()
    server.step()


def replaced():
    module = torch.nn.Linear(2, 2)
    server = ParameterServer(module, torch.optim.SGD, lr=0.1)
    module.bias.data = torch.ones(2)
    server(torch.ones(2)).sum().backward()
    server.step()


PROGRAMS = {
    loaded: "weight, bias written to in the module since the ParameterServer was made",
    replaced: "bias written to in the module since the ParameterServer was made",
    twice: "a second backward pass before step",
    sparse: "the gradient of weight is sparse",
    two_types: "0.weight is torch.float32 and 1.weight is torch.float64",
    nothing_used: "no gradient for 1.weight, 1.bias",
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_wrong_programs_are_told_why(program):
    with pytest.raises(RankError, match=PROGRAMS[program]):
        launch(program, world_size=1)


def served_by_collectives(kind, servers):
    torch.manual_seed(dist.get_rank())
    module = kind()
    trainer = ServedByCollectives(module, torch.optim.SGD, lr=0.1, momentum=0.9, servers=servers)
    for step in range(STEPS):
        loss_of(module, step, dist.get_rank(), dist.get_world_size()).backward()
        trainer.step()
        trainer.zero_grad()
    return flat(module)


@pytest.mark.parametrize("device", ["cpu", "strict"])
@pytest.mark.parametrize(("ranks", "servers"), [(1, 1), (2, 1), (3, 2), (4, 4)])
def test_push_is_a_reduce_and_pull_a_broadcast(ranks, servers, device):
    for kind in (awkward.OddSizes, awkward.Tied):
        for parameters in launch(served_by_collectives, kind, servers, world_size=ranks, device=device).returns:
            torch.testing.assert_close(parameters, alone(kind))


def test_by_nccls_rules_too():
    """Lines talk through the host, whatever the ranks' own backend."""
    returned = launch(train, awkward.OddSizes, Synchronous(), {"servers": 2}, world_size=2, device="strict").returns
    torch.testing.assert_close(returned[1]["parameters"], alone(awkward.OddSizes))


def test_a_server_adds_up_half_precision_without_overflow():
    values = torch.nn.Parameter(torch.zeros(2, dtype=torch.float16))
    served = Served(values, Workers(2, {0, 1}), torch.optim.SGD([values], lr=1.0))
    for worker in (0, 1):
        Synchronous().pushed(served, worker, 0, torch.full((2,), 40_000.0, dtype=torch.float16))
    assert (values.dtype, values.tolist()) == (torch.float16, [-40_000.0, -40_000.0])
