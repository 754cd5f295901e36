"""Collectives on real ranks against torch.distributed.

Copies and sums of whole numbers are compared bit for bit; sums of random floats within a tolerance, since every
algorithm adds in another order. After an all-reduce all ranks must hold the same bits, whatever the algorithm.
"""

import functools
import random
import zlib

import pytest
import torch
import torch.distributed as dist

from ringzero import RankError, launch
from ringzero.collectives import ALGORITHMS

SIZES = (0, 1, 7, 1000, 100_003)
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.complex64)
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 4e-2, torch.int64: 0, torch.complex64: 1e-5}
OPS = {"sum": "SUM", "avg": "SUM", "max": "MAX", "product": "PRODUCT"}  # gloo has no AVG
CASES = [(collective, name) for collective, named in ALGORITHMS.items() for name in named]


def defined(op, dtype):
    if op == "avg":
        return dtype.is_floating_point or dtype.is_complex
    return op == "sum" or not dtype.is_complex


def numbers(numel, dtype, rank):
    generator = torch.Generator().manual_seed(1000 + rank)  # by rank: a rank's missing contribution shows
    if not dtype.is_floating_point and not dtype.is_complex:
        return torch.randint(-1000, 1000, (numel,), generator=generator, dtype=dtype)
    kind = torch.complex64 if dtype.is_complex else torch.float32
    return torch.randn(numel, generator=generator, dtype=kind).to(dtype)


class Oracle:
    """What a collective must give on this rank, by torch.distributed's all_gather, all_reduce and broadcast."""

    def __init__(self, numel, dtype):
        from ringzero.collectives import chunk_bounds

        self.rank, n = dist.get_rank(), dist.get_world_size()
        self.source = numbers(numel, dtype, self.rank)
        bounds = chunk_bounds(numel, n).tolist()
        self.mine = slice(*bounds[self.rank : self.rank + 2])
        everyone = [torch.empty_like(self.source) for _ in range(n)]
        if numel:
            dist.all_gather(everyone, self.source)
        self.gathered = torch.cat([part[bounds[rank] : bounds[rank + 1]] for rank, part in enumerate(everyone)])
        self.exchanged = torch.cat([part[self.mine] for part in everyone])
        self.reduced, self.broadcast = functools.cache(self.reduced), functools.cache(self.broadcast)

    def reduced(self, op):
        result = self.source.clone()
        dist.all_reduce(result, getattr(dist.ReduceOp, OPS[op]))
        return result / dist.get_world_size() if op == "avg" else result

    def broadcast(self, root):
        result = self.source.clone()
        dist.broadcast(result, root)
        return result

    def call(self, collective, op, root, **options):
        """``(result, what it must be)`` of our own on a copy of the source, both None where nothing is promised."""
        import ringzero

        buffer = self.source.clone()

        def at_root(result, expected):
            return (result, expected) if self.rank == root else (None, None)

        calls = {
            "all_reduce": lambda: (ringzero.all_reduce(buffer, op, **options), self.reduced(op)),
            "reduce_scatter": lambda: (ringzero.reduce_scatter(buffer, op, **options), self.reduced(op)[self.mine]),
            "all_gather": lambda: (ringzero.all_gather(self.blank(self.mine), **options), self.gathered),
            "broadcast": lambda: (ringzero.broadcast(buffer, root, **options), self.broadcast(root)),
            "reduce": lambda: at_root(ringzero.reduce(buffer, root, op, **options), self.reduced(op)),
            "gather": lambda: at_root(ringzero.gather(self.blank(self.mine), root, **options), self.gathered),
            "scatter": lambda: (ringzero.scatter(buffer, root, **options), self.broadcast(root)[self.mine]),
            "all_to_all": lambda: (
                ringzero.all_to_all(torch.zeros_like(self.exchanged), buffer, **options),
                self.exchanged,
            ),
            "barrier": lambda: (ringzero.barrier(**options), None),
        }
        return calls[collective]()

    def blank(self, brought):
        """Zeros, but for the chunk that this rank brings."""
        buffer = torch.zeros_like(self.source)
        buffer[brought] = self.source[brought]
        return buffer


def close(ours, theirs):
    tolerance = TOLERANCE[ours.dtype] * dist.get_world_size()
    return ours.shape == theirs.shape and torch.allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def settings(collective, name, n, dice):
    """A root, an op and options for a call: at random, the same on all ranks."""
    from ringzero.collectives import options, shapes

    takes = options(collective, name)
    chosen = {"chunks": dice.choice([1, 2, 5, None]), "servers": dice.randint(1, n)}
    chosen["shape"] = dice.choice([None, *shapes(n, 3 if name == "torus_3d" else 2)])
    return {option: chosen[option] for option in takes if option != "root"}


def compare():
    """Every algorithm on every size, each time on two of the types; ``(what is wrong, digests of all-reduces)``."""
    from ringzero.collectives import world_sizes

    n, dice, wrong, digests = dist.get_world_size(), random.Random(7), [], []
    for size, numel in enumerate(SIZES):
        for kind, dtype in enumerate(DTYPES):
            oracle = Oracle(numel, dtype)
            for collective, name in CASES[(size + kind) % 5 :: 5] + CASES[(size + kind + 2) % 5 :: 5]:
                options = settings(collective, name, n, dice)
                op, root = dice.choice([op for op in OPS if defined(op, dtype)]), dice.randrange(n)
                if n not in world_sizes(collective, name, n):
                    continue
                ours, theirs = oracle.call(collective, op, root, algorithm=name, **options)
                exact = dtype == torch.int64 or op == "max" or "reduce" not in collective
                if ours is not None and not (torch.equal(ours, theirs) if exact else close(ours, theirs)):
                    wrong.append((collective, name, numel, str(dtype), op, root, str(options)))
                if collective == "all_reduce":
                    digests.append((name, zlib.crc32(ours.view(torch.uint8).numpy())))
    return wrong, digests


@pytest.mark.parametrize("world_size", [5, 1, 2, 3, 4, 6])
def test_equal_to_torch_distributed(world_size):
    returns = launch(compare, world_size=world_size).returns
    assert [wrong for wrong, _ in returns] == [[]] * world_size
    assert [digests for _, digests in returns] == [returns[0][1]] * world_size, "ranks hold different bits"


def test_a_round_as_one_batch():
    """As on a GPU, where the messages of a round are one operation."""
    returns = launch(compare, world_size=4, device="strict", timeout=600).returns
    assert [wrong for wrong, _ in returns] == [[]] * 4
    assert [digests for _, digests in returns] == [returns[0][1]] * 4


def through_the_host():
    """As with a GPU and gloo, but the GPU: buffers are copied, and the results copied back."""
    from ringzero.collectives import run

    run.needs_the_host = lambda device, group: True
    return compare()[0]


def test_a_tensor_the_group_cannot_send_goes_through_the_host():
    assert launch(through_the_host).returns == [[], []]


def cut_small(segment_bytes, packed_bytes):
    """Far more segments than landing places, and segments that do not divide a chunk."""
    global SIZES, DTYPES
    from ringzero.collectives import messages

    messages.SEGMENT_BYTES, messages.PACKED_BYTES = segment_bytes, packed_bytes
    SIZES, DTYPES = (20_003,), (torch.float32, torch.complex64)
    return compare()[0]


@pytest.mark.parametrize("limits", [(400, 0), (4096, 1000), (100_000, 100_000)])
def test_messages_cut_and_packed(limits):
    assert launch(cut_small, *limits, world_size=3).returns == [[]] * 3


def signed_zeros():
    """max(0.0, -0.0) may be either, by which comes first: the ranks must still agree."""
    import ringzero

    zeros = torch.zeros(1000) * (1 - 2 * (dist.get_rank() % 2))
    found = [ringzero.all_reduce(zeros.clone(), "max", algorithm=name) for name in ALGORITHMS["all_reduce"]]
    return [zlib.crc32(result.view(torch.uint8).numpy()) for result in found]


def test_ranks_agree_on_the_sign_of_zero():
    first, *others = launch(signed_zeros, world_size=4).returns
    assert others == [first] * 3


def shapes_and_views():
    import ringzero

    matrix = torch.full((3, 5), float(dist.get_rank() + 1))
    ringzero.all_reduce(matrix)
    inside = torch.zeros(30)
    inside[10:20] = dist.get_rank() + 1
    ringzero.all_reduce(inside[10:20])  # a view: memory outside it stays
    parameter = torch.nn.Parameter(torch.ones(4))
    ringzero.all_reduce(parameter)
    product = ringzero.all_reduce(torch.tensor([2.0]), "product")
    least = ringzero.all_reduce(torch.tensor([float(dist.get_rank())]), "min")
    return matrix.tolist(), inside.tolist(), parameter.tolist(), product.item(), least.item()


def test_any_contiguous_shape_a_view_or_a_parameter():
    for matrix, inside, parameter, product, least in launch(shapes_and_views, world_size=3).returns:
        assert matrix == [[6.0] * 5] * 3
        assert inside == [0.0] * 10 + [6.0] * 10 + [0.0] * 10
        assert parameter == [3.0] * 4
        assert (product, least) == (8.0, 0.0)


def unequal_splits(seed):
    """Ours and torch's, on rows of 3 numbers."""
    import ringzero

    rank, n = dist.get_rank(), dist.get_world_size()
    rows = torch.randint(0, 5, (n, n), generator=torch.Generator().manual_seed(seed))  # from, to
    source = torch.arange(int(rows[rank].sum()) * 3).reshape(-1, 3) * n + rank
    arriving = source.new_zeros(int(rows[:, rank].sum()), 3)
    sizes = rows[:, rank].tolist(), rows[rank].tolist()
    theirs = arriving.clone()
    dist.all_to_all_single(theirs, source, *sizes)
    ours = ringzero.all_to_all(arriving, source, *sizes)
    return ours.data_ptr() == arriving.data_ptr() and torch.equal(ours, theirs)


@pytest.mark.parametrize("world_size", [1, 2, 5])
def test_all_to_all_with_unequal_splits(world_size):
    for seed in range(3):
        assert launch(unequal_splits, seed, world_size=world_size).returns == [True] * world_size


def one_after_another(seed):
    """Collectives in a row with nothing between them, ranks early and late; the names of those that went wrong."""
    import time

    import ringzero
    from ringzero.collectives import world_sizes

    rank, n = dist.get_rank(), dist.get_world_size()
    together, alone = random.Random(seed), random.Random(rank)
    cases = [case for case in CASES if case[0] in ("all_reduce", "broadcast", "all_gather", "barrier")]
    calls = [(*together.choice(cases), together.choice([5, 1000, 70_000])) for _ in range(60)]
    buffers = [torch.full((numel,), rank + 1 + number) for number, (_, _, numel) in enumerate(calls)]
    for (collective, name, _), buffer in zip(calls, buffers, strict=True):
        if alone.random() < 0.2:
            time.sleep(alone.random() / 100)
        if n in world_sizes(collective, name, n):
            arguments = () if collective == "barrier" else (buffer,)
            getattr(ringzero, collective)(*arguments, algorithm=name)
    wrong = []
    for number, ((collective, name, numel), buffer) in enumerate(zip(calls, buffers, strict=True)):
        expected = {"all_reduce": n * number + n * (n + 1) // 2, "broadcast": number + 1}.get(collective)
        if expected is not None and buffer.tolist() != [expected] * numel:
            wrong.append((number, collective, name))
    return wrong


@pytest.mark.parametrize("world_size", [2, 4])
def test_calls_in_a_row_do_not_mix(world_size):
    assert launch(one_after_another, 3, world_size=world_size).returns == [[]] * world_size


def in_two_threads():
    """Two groups, each in a thread of its own, that reduce at the same time."""
    import threading

    import ringzero

    wrong = []
    groups = [dist.new_group(backend="gloo") for _ in range(2)]

    def work(number):
        for step in range(50):
            buffer = torch.full((5000 + number,), step + dist.get_rank())
            ringzero.all_reduce(buffer, algorithm=("ring", "recursive_doubling")[step % 2], group=groups[number])
            if buffer.tolist() != [2 * step + 1] * len(buffer):
                wrong.append((number, step))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def test_two_threads_do_not_share_scratch_memory():
    assert launch(in_two_threads).returns == [[], []]


def in_a_group(ranks):
    import ringzero

    group = dist.new_group(ranks)
    tensor = torch.full((1001,), float(dist.get_rank()))
    if dist.get_rank() in ranks:
        ringzero.all_reduce(tensor, group=group)
        ringzero.broadcast(tensor, root=1, group=group)
    return tensor[0].item()


def test_a_group_of_some_ranks_numbers_them_itself():
    assert launch(in_a_group, [3, 1, 2], world_size=5).returns == [0.0, 6.0, 6.0, 6.0, 4.0]


def each_once(numel, cases):
    """Every algorithm once, a barrier before each to tell them apart in the trace."""
    import ringzero

    for collective, name in cases:
        buffer = torch.ones(numel, dtype=torch.float64)
        dist.barrier()
        if collective == "barrier":
            ringzero.barrier(algorithm=name)
        elif collective == "all_to_all":
            start, stop = ((dist.get_rank() + k) * numel // dist.get_world_size() for k in (0, 1))
            ringzero.all_to_all(buffer.new_zeros(dist.get_world_size() * (stop - start)), buffer, algorithm=name)
        else:
            getattr(ringzero, collective)(buffer, algorithm=name)


@pytest.mark.parametrize(("world_size", "numel"), [(1, 10), (2, 1001), (4, 100_003), (5, 3), (3, 0)])
def test_bytes_on_the_wire_are_the_schedules(world_size, numel):
    from ringzero.collectives import world_sizes
    from ringzero.collectives.auto import chosen

    cases = [case for case in CASES if world_size in world_sizes(*case, world_size)]
    trace = launch(each_once, numel, cases, world_size=world_size, trace=True).trace
    assert {op.kind for op in trace} <= {"send", "recv", "header", "barrier"}
    for rank in range(world_size):
        sent = []
        for op in trace:
            if op.rank == rank and op.kind == "barrier":
                sent.append([])
            elif op.rank == rank and op.kind == "send":
                sent[-1].append((op.peer, op.bytes))
        for (collective, name), sends in zip(cases, sent, strict=True):
            _, options = chosen(collective, name, world_size, numel * 8)
            schedule = ALGORITHMS[collective][name](world_size, **options)
            if collective == "barrier":
                assert [size for _, size in sends] == [1] * schedule.messages_sent()[rank]
            else:
                by_peer = [sum(size for peer, size in sends if peer == other) for other in range(world_size)]
                assert by_peer == schedule.link_bytes(numel, 8)[rank].tolist(), (collective, name)


def test_no_message_of_others_passes_for_a_header():
    def hide():
        from ringzero.record.wire import HEADER_TAG

        peer = 1 - dist.get_rank()
        works = [
            dist.isend(torch.ones(2), peer, tag=HEADER_TAG),
            dist.irecv(torch.ones(2), peer, tag=HEADER_TAG),
        ]
        [work.wait() for work in works]

    assert {op.kind for op in launch(hide, trace=True).trace} == {"send", "recv"}


BAD = {
    "a strided tensor": (
        lambda rz: rz.all_reduce(torch.ones(4, 4).t()[:2]),
        r"all_reduce works in place on contiguous memory; this tensor of shape \(2, 4\) has strides \(1, 4\)",
    ),
    "a sparse tensor": (
        lambda rz: rz.all_reduce(torch.eye(3).to_sparse()),
        r"this one is torch.sparse_coo. Pass tensor.to_dense",
    ),
    "a list": (lambda rz: rz.gather([1.0]), "gather takes a torch.Tensor, not a list"),
    "an unknown op": (lambda rz: rz.all_reduce(torch.ones(2), "mean"), "op is 'mean'; it is one of 'sum', 'avg'"),
    "an average of integers": (
        lambda rz: rz.all_reduce(torch.ones(2).long(), "avg"),
        'this one is torch.int64. Use "sum"',
    ),
    "a maximum of complex numbers": (
        lambda rz: rz.reduce_scatter(torch.ones(2).cfloat(), "max"),
        "complex numbers have no order",
    ),
    "an unknown algorithm": (
        lambda rz: rz.scatter(torch.ones(2), algorithm="tree"),
        "algorithm is 'tree'; scatter has 'flat', 'binomial' and 'auto'",
    ),
    "a type that one rank alone would have to add": (
        lambda rz: rz.reduce(torch.zeros(3, dtype=torch.float8_e4m3fn), 1),
        r"op='sum' is not computed for torch.float8_e4m3fn on cpu .* convert the tensor, such as",
    ),
    "a loss that is reduced before its backward pass": (
        lambda rz: rz.all_reduce((torch.ones(2, requires_grad=True) * 2).sum()).backward(),
        r"all_reduce works in place on memory, which autograd does not see, .* Pass tensor.detach\(\), or take",
    ),
    "one of several views with a graph": (
        lambda rz: rz.all_reduce((torch.ones(2, requires_grad=True) * 2).unbind()[0]),
        r"all_reduce works in place on memory, which autograd does not see, .* Pass tensor.detach\(\), or take",
    ),
    "activations with a graph": (
        lambda rz: rz.all_to_all(torch.ones(2), torch.ones(2, requires_grad=True) * 2),
        r"all_to_all works in place on memory, which autograd does not see, .* Pass tensor.detach\(\), or take",
    ),
    "a tensor without numbers": (
        lambda rz: rz.broadcast(torch.ones(2, device="meta")),
        "broadcast takes a tensor with numbers; this one is on the meta device",
    ),
    "a conjugated tensor": (
        lambda rz: rz.all_reduce(torch.ones(2, dtype=torch.complex64).conj()),
        r"all_reduce works in place on memory, .* view by conj.* Pass tensor.resolve_conj",
    ),
    "a negated tensor": (
        lambda rz: rz.broadcast(torch.ones(1, dtype=torch.complex64).conj().imag),
        "broadcast works in place on memory, .* the negatives of its numbers",
    ),
    "a negated input": (
        lambda rz: rz.all_to_all(torch.ones(1), torch.ones(1, dtype=torch.complex64).conj().imag),
        "all_to_all works in place on memory, .* the negatives of its numbers",
    ),
    "a root out of range": (
        lambda rz: rz.broadcast(torch.ones(2), root=2),
        "root is 2; with 2 ranks it is one of 0 to 1",
    ),
    "an option of another algorithm": (
        lambda rz: rz.broadcast(torch.ones(2), algorithm="flat", chunks=3),
        "chunks is no option of broadcast by 'flat'; it takes root",
    ),
    "an option where there is none": (
        lambda rz: rz.barrier(servers=1),
        "servers is no option of barrier by 'dissemination'; it takes none",
    ),
    "an option with auto": (
        lambda rz: rz.broadcast(torch.ones(2), algorithm="auto", chunks=2),
        "chunks is an option of some algorithms; name the one you mean instead of 'auto'",
    ),
    "a shape that does not fit": (
        lambda rz: rz.all_reduce(torch.ones(2), algorithm="torus_2d", shape=[3, 1]),
        r"shape is \(3, 1\); rows x columns must be 2: one of 1x2, 2x1",
    ),
    "an output of another size": (
        lambda rz: rz.all_to_all(torch.zeros(3), torch.ones(4)),
        "output has 3 elements.* has 2, so 4 arrive",
    ),
    "an output of another type": (
        lambda rz: rz.all_to_all(torch.zeros(4).long(), torch.ones(4)),
        "output is torch.int64 on cpu, input torch.float32 on cpu",
    ),
    "an output that is the input": (
        lambda rz: (lambda x: rz.all_to_all(x, x))(torch.ones(4)),
        "output and input of all_to_all overlap in memory",
    ),
    "splits that do not add up": (
        lambda rz: rz.all_to_all(torch.zeros(4), torch.ones(4), [2, 2], [1, 2]),
        r"input_split_sizes is \[1, 2\]; give 2 whole numbers, one a rank, whose sum is the 4 rows of input",
    ),
    "splits for one who must not know them": (
        lambda rz: rz.all_to_all(torch.zeros(4), torch.ones(4), [2, 2], [2, 2], algorithm="bruck"),
        'every rank must know every chunk\'s size; .* take algorithm="pairwise"',
    ),
}


def call_bad(name):
    import ringzero

    BAD[name][0](ringzero)


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name):
    with pytest.raises(RankError, match=BAD[name][1]):
        launch(call_bad, name)


def a_loss_after_its_backward_pass():
    import ringzero

    weight = torch.ones(2, requires_grad=True)
    loss = (weight * (dist.get_rank() + 1)).sum()
    loss.backward()
    ringzero.all_reduce(loss, "avg")
    assert torch.equal(weight.grad, torch.full((2,), dist.get_rank() + 1.0))
    return float(loss)


def test_a_loss_may_be_averaged_to_be_printed():
    assert launch(a_loss_after_its_backward_pass, device="strict").returns == [3.0, 3.0]


HALF_BOUND = {torch.float16: 2**-9, torch.bfloat16: 2**-6}  # of the largest: N - 1 sums, each rounded, N <= 5


def mean_of_large_numbers(dtype, device):
    """By every algorithm, of numbers whose sum does not fit the type, and of others by the rank's own seed."""
    import ringzero
    from ringzero.collectives import world_sizes

    rank, n = dist.get_rank(), dist.get_world_size()
    large = 0.7 * torch.finfo(dtype).max
    brought = [numbers(40, torch.float32, r).clamp(-2, 2).to(dtype) for r in range(n)]
    mean = sum(part.double() for part in brought) / n
    for name in ALGORITHMS["all_reduce"]:
        if n not in world_sizes("all_reduce", name, n):
            continue
        same = torch.full((7,), large, dtype=dtype)
        expected = same.double()
        got = ringzero.all_reduce(same, "avg", algorithm=name).double()
        assert ((got - expected) / expected).abs().max() <= HALF_BOUND[dtype], (name, got)
        got = ringzero.all_reduce(brought[rank].clone(), "avg", algorithm=name).double()
        assert (got - mean).abs().max() <= HALF_BOUND[dtype] * 2, name
    part = ringzero.reduce_scatter(torch.full((5 * n,), large, dtype=dtype), "avg")
    assert ((part.double() - large) / large).abs().max() <= HALF_BOUND[dtype]
    same = torch.full((7,), large, dtype=dtype)
    ringzero.reduce(same, 0, "avg")
    assert ((same.double() - large) / large).abs().max() <= HALF_BOUND[dtype]
    if device == "strict":
        dist.all_reduce(same, dist.ReduceOp.AVG)
        assert ((same.double() - large) / large).abs().max() <= HALF_BOUND[dtype]
    return True


@pytest.mark.parametrize("device", ["cpu", "strict"])
@pytest.mark.parametrize("dtype", HALF_BOUND)
def test_a_mean_that_fits_its_type_does_not_overflow_on_its_way(dtype, device):
    for world_size in (1, 2, 3, 5):
        assert all(launch(mean_of_large_numbers, dtype, device, world_size=world_size, device=device).returns)


def averages_and_what_they_leave():
    import ringzero

    rank, n = dist.get_rank(), dist.get_world_size()
    mine = numbers(1000, torch.float32, rank)
    mean, total = ringzero.all_reduce(mine.clone(), "avg"), ringzero.all_reduce(mine.clone())
    assert torch.equal(mean, total / n)  # scaling by a power of two rounds nothing
    kept = mine.clone()
    ringzero.reduce(kept, 0, "avg")
    total = ringzero.reduce(mine.clone(), 0)
    assert torch.equal(kept, total / n if rank == 0 else mine)
    kept = mine[:999].clone()  # a size that was not checked before
    if n == 2:  # so both ranks hear of it
        with pytest.raises(ValueError, match="every rank must"):
            ringzero.all_reduce(kept, "avg", algorithm="flat" if rank else "ring")
        assert torch.equal(kept, mine[:999])
    return True


def test_a_mean_is_the_sum_divided_and_leaves_others_as_they_were():
    for world_size in (2, 3):
        assert all(launch(averages_and_what_they_leave, world_size=world_size).returns)


LAYOUTS = {  # by name: 6 numbers that hold `start` and what follows it, as a tensor of 2 x 3
    "contiguous": lambda new: new(2, 3),
    "gaps": lambda new: new(2, 6)[:, ::2],
    "columns": lambda new: new(3, 2).T,
    "columns with gaps": lambda new: new(3, 4)[:, ::2].T,
    "not from its beginning": lambda new: new(4, 7)[1:3, 2:5],
    "no numbers": lambda new: new(0, 6)[:, ::2],
    "conjugated": lambda new: new(2, 3, dtype=torch.complex64).conj(),
    "negated": lambda new: new(2, 3, dtype=torch.complex64).conj().imag,
    "expanded": lambda new: new(2, 1).expand(2, 3),
}


def lay_out(name, start):
    from ringzero.collectives.torchs import write

    tensor = LAYOUTS[name](torch.zeros)
    numbers = torch.arange(start, start + tensor.numel(), dtype=torch.float32).view(tensor.shape).to(tensor.dtype)
    if tensor.is_complex():
        numbers = numbers + 1j
    if name == "expanded":
        numbers = numbers[:, :1].expand(2, 3)
    write(tensor, numbers)
    return tensor, numbers.clone()


def move_layouts(names):
    """Ranks have another layout each; torch's own collectives move them through ``contiguous``."""
    from ringzero.collectives.torchs import contiguous

    rank, n = dist.get_rank(), dist.get_world_size()
    for shift in range(len(names)):
        mine = names[(rank + shift) % len(names)]
        tensor, _ = lay_out(mine, 10.0 * rank)
        begins = tensor.storage_offset(), tensor.stride()
        with contiguous(tensor) as numbers:
            dist.broadcast(numbers, n - 1)
        assert torch.equal(tensor, lay_out(mine, 10.0 * (n - 1))[1]), mine
        assert (tensor.storage_offset(), tensor.stride()) == begins
        tensor, _ = lay_out(mine, 10.0 * rank)
        with contiguous(tensor) as numbers:
            dist.all_reduce(numbers)
        assert torch.equal(tensor, sum(lay_out(mine, 10.0 * r)[1] for r in range(n))), mine
    return True


@pytest.mark.parametrize("device", ["cpu", "strict"])
@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_torchs_collectives_move_tensors_of_any_layout(world_size, device):
    real = ["contiguous", "gaps", "columns", "columns with gaps", "not from its beginning", "negated"]
    for names in (real, ["no numbers"], ["expanded"], ["conjugated"][: device == "cpu"]):
        assert not names or all(launch(move_layouts, names, world_size=world_size, device=device).returns)


def broadcast_what_shares_memory():
    from ringzero.collectives.torchs import contiguous

    tensor = torch.arange(6.0).view(2, 3) if dist.get_rank() == 0 else torch.zeros(2, 1).expand(2, 3)
    with contiguous(tensor) as numbers:
        dist.broadcast(numbers, 0)


def test_numbers_that_share_memory_get_no_different_ones():
    with pytest.raises(RankError, match=r"shape \(2, 3\) with strides \(1, 0\) holds one number in several places"):
        launch(broadcast_what_shares_memory)


def sparse_is_refused():
    from ringzero.collectives.torchs import contiguous

    with contiguous(torch.eye(3).to_sparse()):
        pass


def test_torchs_collectives_are_given_no_sparse_tensor():
    with pytest.raises(RankError, match=r"this one is torch.sparse_coo. Pass tensor.to_dense"):
        launch(sparse_is_refused)


def start_of_awkward_layouts():
    from ringzero.data_parallel import DistributedDataParallel

    torch.manual_seed(dist.get_rank())
    module = torch.nn.Module()
    module.w = torch.nn.Parameter(torch.randn(6, 6)[:, ::2])
    module.register_buffer("column", torch.rand(3, 4)[:, 0])
    module.register_buffer("wide", torch.rand(3, 1).expand(3, 4))
    DistributedDataParallel(module)
    return [tensor.detach().clone() for tensor in (module.w, module.column, module.wide)]


def test_replicas_start_alike_whatever_the_layout():
    first, second = launch(start_of_awkward_layouts).returns
    torch.manual_seed(0)
    for one, other, given in zip(
        first, second, (torch.randn(6, 6)[:, ::2], torch.rand(3, 4)[:, 0], torch.rand(3, 1).expand(3, 4)), strict=True
    ):
        assert torch.equal(one, given)
        assert torch.equal(other, given)


def caught_where_only_the_root_adds():
    import ringzero

    for collective in (ringzero.reduce, ringzero.all_reduce, ringzero.reduce_scatter):
        with pytest.raises(ValueError, match="is not computed for torch.float8_e4m3fn"):
            collective(torch.zeros(3, dtype=torch.float8_e4m3fn), algorithm="flat")
    moved = torch.full((3,), dist.get_rank() + 1.0).to(torch.float8_e4m3fn)
    return ringzero.broadcast(moved, 1).float().tolist()


def test_a_type_that_is_not_reduced_is_refused_on_all_ranks():
    assert launch(caught_where_only_the_root_adds, world_size=3).returns == [[2.0, 2.0, 2.0]] * 3


def outside_the_group():
    import ringzero

    group = dist.new_group([0, 1])
    ringzero.all_reduce(torch.ones(2), group=group)


def test_a_rank_outside_the_group_is_told():
    with pytest.raises(RankError, match="rank 2 is not in the group it passed to all_reduce; only members may call it"):
        launch(outside_the_group, world_size=3)


def mismatched(kind, plain):
    import ringzero

    odd, group = dist.get_rank() == 1, dist.new_group(backend="gloo") if plain else None
    tensor = torch.ones(
        9 if odd and kind == "size" else 8, dtype=torch.float64 if odd and kind == "dtype" else torch.float32
    )
    try:
        if odd and kind == "collective":
            ringzero.reduce_scatter(tensor, group=group)
        elif odd and kind == "op":
            ringzero.all_reduce(tensor, "max", group=group)
        elif odd and kind == "algorithm":
            ringzero.all_reduce(tensor, algorithm="recursive_doubling", group=group)
        else:
            ringzero.all_reduce(tensor, group=group)
    except ValueError:
        assert torch.equal(tensor, torch.ones_like(tensor)), "the data must be as it was"
        raise


MISMATCHES = {
    "size": r"brought \d elements of torch.float32, rank \d brought \d of torch.float32; every rank must pass",
    "dtype": r"brought 8 elements of torch.float\d\d, rank \d brought 8 of torch.float\d\d",
    "collective": r"rank \d of the group called \w+\(op=\"sum\"\), rank \d called \w+\(op=\"sum\"\); every rank must",
    "op": r"called all_reduce\(op=\"\w+\"\), rank \d called all_reduce\(op=\"\w+\"\); every",
    "algorithm": r"rank \d called all_reduce\(op=\"sum\"\), but with another algorithm, root or number of chunks",
}


@pytest.mark.parametrize("kind", MISMATCHES)
@pytest.mark.parametrize(("world_size", "plain"), [(2, False), (4, False), (2, True)])
def test_mismatched_calls_are_refused_before_any_data_is_touched(kind, world_size, plain):
    message = MISMATCHES[kind]
    if kind == "algorithm" and world_size > 2:  # who waits for one another by different algorithms may not send at all
        message += "|rank 1 stands apart: the ranks disagree"
    with pytest.raises(RankError, match=message):
        launch(mismatched, kind, plain, world_size=world_size)


def mismatched_splits():
    import ringzero

    rank = dist.get_rank()
    ringzero.all_to_all(torch.zeros(2 + rank), torch.ones(4), [1, 1 + rank], [2, 2])


def test_mismatched_splits_are_refused():
    with pytest.raises(RankError, match=r"rank \d of the group sends 2 elements of torch.float32, rank \d expects 1"):
        launch(mismatched_splits)


def headers_of_repeated_calls(plain):
    """How many headers each of four calls sent: two alike, one on another size, one as the first."""
    import ringzero
    from ringzero.collectives import agree

    group, sent, counts = dist.new_group(backend="gloo") if plain else None, [], []
    packed = agree.Header.packed
    agree.Header.packed = lambda self: (sent.append(1), packed(self))[1]
    for numel in (100, 100, 50, 100):
        before = len(sent)
        ringzero.all_reduce(torch.ones(numel), group=group)
        counts.append(len(sent) - before)
    return counts


@pytest.mark.parametrize("plain", [True, False])
def test_a_call_is_checked_once(plain):
    assert launch(headers_of_repeated_calls, plain).returns == [[1, 0, 1, 0]] * 2


@pytest.mark.parametrize("known", [True, False])
def test_a_call_that_differs_later_is_explained(known):
    """All ranks have checked the call that rank 1 then makes another one for, which the others know or do not."""

    def changes_its_mind():
        import ringzero

        for numel in (100, 50 if known else 100):
            ringzero.all_reduce(torch.ones(numel))
        ringzero.all_reduce(torch.ones(50 if dist.get_rank() == 1 else 100))

    with pytest.raises(RankError) as caught:
        launch(changes_its_mind, world_size=3, timeout=20)
    said = str(caught.value)
    assert "rank 1 stands apart: the ranks disagree on collective #3: ranks 0, 2 called ringzero collective #3" in said
    assert 'all_reduce(op="sum") of 100 elements of torch.float32' in said
    assert 'all_reduce(op="sum") of 50 elements of torch.float32' in said
