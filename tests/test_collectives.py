"""Collectives on real ranks against torch.distributed.

Sums of whole numbers are compared bit for bit; sums of random floats within a tolerance, because the ring adds in
another order than gloo. Copies (all-gather, broadcast) and max are always bitwise equal, and so are all results of
an all-reduce: each chunk is reduced on one rank and copied.
"""

import pytest
import torch
import torch.distributed as dist

from ringzero import RankError, launch

SIZES = (0, 1, 7, 1000, 1_000_003)
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.complex64)
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 4e-2, torch.int64: 0, torch.complex64: 1e-5}


def defined(op, dtype):
    if op == "avg":
        return dtype.is_floating_point or dtype.is_complex
    return op != "max" or not dtype.is_complex


def random(numel, dtype, rank):
    generator = torch.Generator().manual_seed(1000 + rank)  # by rank: a rank's missing contribution shows
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(numel, generator=generator, dtype=torch.complex64 if dtype.is_complex else torch.float32).to(
            dtype
        )
    return torch.randint(-1000, 1000, (numel,), generator=generator, dtype=dtype)


def torch_all_reduce(tensor, op):
    """The oracle. gloo has no AVG: its sum, divided."""
    result = tensor.clone()
    dist.all_reduce(result, dist.ReduceOp.MAX if op == "max" else dist.ReduceOp.SUM)
    return result / dist.get_world_size() if op == "avg" else result


def close(ours, theirs):
    tolerance = TOLERANCE[ours.dtype]
    return torch.allclose(ours, theirs, rtol=tolerance, atol=tolerance * dist.get_world_size())


def compare(algorithm):
    """Every size, dtype and op of all_reduce, reduce_scatter, all_gather, reduce and broadcast; the failures."""
    import ringzero
    from ringzero.collectives import chunk_bounds

    rank, world_size = dist.get_rank(), dist.get_world_size()
    wrong = []
    for numel in SIZES:
        mine = slice(*chunk_bounds(numel, world_size)[rank : rank + 2].tolist())
        for dtype in DTYPES:
            source = random(numel, dtype, rank)

            def check(condition, *what, numel=numel, dtype=dtype):
                if not condition:
                    wrong.append((rank, numel, str(dtype), *what))

            for op in ("sum", "avg", "max"):
                if not defined(op, dtype):
                    continue
                expected = torch_all_reduce(source, op)
                result = source.clone()
                returned = ringzero.all_reduce(result, op, algorithm=algorithm)
                check(returned.data_ptr() == result.data_ptr(), op, "in place")
                check(torch.equal(result, expected) if op == "max" else close(result, expected), op, "all_reduce")
                everyone = [torch.empty_like(result) for _ in range(world_size)]
                if numel:
                    dist.all_gather(everyone, result)
                check(all(torch.equal(everyone[0], other) for other in everyone), op, "ranks differ")
                if algorithm == "ring":
                    scratch = source.clone()
                    check(close(ringzero.reduce_scatter(scratch, op), expected[mine]), op, "reduce_scatter")
                    gathered = torch.zeros_like(source)
                    gathered[mine] = result[mine]
                    check(torch.equal(ringzero.all_gather(gathered), result), op, "all_gather")
                else:
                    for root in range(world_size):
                        reduced = ringzero.reduce(source.clone(), root, op)
                        check(
                            close(reduced, expected) if rank == root else torch.equal(reduced, source),
                            op,
                            "reduce",
                            root,
                        )
            for root in (0, world_size - 1):
                expected = source.clone()
                dist.broadcast(expected, root)
                for options in [{"chunks": 1}, {"chunks": 5}, {}] if algorithm == "ring" else [{}]:
                    result = ringzero.broadcast(source.clone(), root, algorithm=algorithm, **options)
                    check(torch.equal(result, expected), "broadcast", root, options)
    return wrong


@pytest.mark.parametrize("world_size", [5, 1, 2, 3, 4])
@pytest.mark.parametrize("algorithm", ["ring", "flat"])
def test_equal_to_torch_distributed(world_size, algorithm):
    assert launch(compare, algorithm, world_size=world_size, timeout=120).returns == [[]] * world_size


def exact_sums():
    import ringzero

    source = torch.arange(1_000_003, dtype=torch.float32) % 1009 * (dist.get_rank() + 1)
    expected = torch_all_reduce(source, "sum")
    return torch.equal(ringzero.all_reduce(source), expected)


def test_sums_of_whole_numbers_are_bitwise_equal():
    assert launch(exact_sums, world_size=4).returns == [True] * 4


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


def larger_than_a_segment(segment_bytes):
    import ringzero
    from ringzero.collectives import run

    run.SEGMENT_BYTES = segment_bytes
    run._program.cache_clear()
    source = torch.arange(100_003, dtype=torch.float32) % 1009 * (dist.get_rank() + 1)
    expected = torch_all_reduce(source, "sum")
    results = [torch.equal(ringzero.all_reduce(source.clone(), algorithm=a), expected) for a in ("ring", "flat")]
    first = source.clone()
    dist.broadcast(first, 0)
    return [*results, torch.equal(ringzero.broadcast(source.clone(), chunks=3), first)]


@pytest.mark.parametrize("segment_bytes", [400, 4096, 100_000])
def test_chunks_cut_into_segments(segment_bytes):
    """Far more segments than scratch places, and segments that do not divide a chunk."""
    assert launch(larger_than_a_segment, segment_bytes, world_size=3, timeout=60).returns == [[True] * 3] * 3


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


def counted(size, dtype):
    import ringzero

    ringzero.all_reduce(torch.ones(size, dtype=dtype))


@pytest.mark.parametrize(("world_size", "numel"), [(1, 10), (2, 1001), (4, 4096), (5, 3), (3, 0)])
def test_bytes_on_the_wire_are_the_schedules(world_size, numel):
    from ringzero.collectives import ring_all_reduce

    trace = launch(counted, numel, torch.float64, world_size=world_size, trace=True).trace
    for rank, expected in enumerate(ring_all_reduce(world_size).bytes_sent(numel, 8)):
        sends = [op for op in trace if op["rank"] == rank and op["kind"] == "send"]
        assert sum(op["bytes"] for op in sends) == expected
        assert {op["peer"] for op in sends} <= {(rank + 1) % world_size}
    assert {op["kind"] for op in trace} <= {"send", "recv", "header"}


def test_headers_are_sixteen_bytes_and_nothing_larger_passes_for_one():
    def hide():
        from ringzero.launch import trace

        peer = 1 - dist.get_rank()
        works = [
            dist.isend(torch.ones(100), peer, tag=trace.HEADER_TAG),
            dist.irecv(torch.ones(100), peer, tag=trace.HEADER_TAG),
        ]
        [work.wait() for work in works]

    assert {op["kind"] for op in launch(hide, trace=True).trace} == {"send", "recv"}


BAD = {
    "a strided tensor": (
        lambda rz: rz.all_reduce(torch.ones(4, 4).t()[:2]),
        r"all_reduce works in place on contiguous memory; this tensor of shape \(2, 4\) has strides \(1, 4\)",
    ),
    "a sparse tensor": (
        lambda rz: rz.all_reduce(torch.eye(3).to_sparse()),
        r"this one is torch.sparse_coo. Pass tensor.to_dense",
    ),
    "a list": (lambda rz: rz.all_reduce([1.0]), "takes a torch.Tensor, not a list"),
    "an unknown op": (lambda rz: rz.all_reduce(torch.ones(2), "mean"), "op is 'mean'; it is one of 'sum', 'avg'"),
    "an average of integers": (
        lambda rz: rz.all_reduce(torch.ones(2).long(), "avg"),
        'this one is torch.int64. Use "sum"',
    ),
    "a maximum of complex numbers": (
        lambda rz: rz.all_reduce(torch.ones(2).cfloat(), "max"),
        "complex numbers have no order",
    ),
    "an unknown algorithm": (
        lambda rz: rz.all_reduce(torch.ones(2), algorithm="tree"),
        "all_reduce has 'ring', 'flat'",
    ),
    "a root out of range": (
        lambda rz: rz.broadcast(torch.ones(2), root=2),
        "root is 2; with 2 ranks it is one of 0 to 1",
    ),
    "chunks of a flat broadcast": (
        lambda rz: rz.broadcast(torch.ones(2), algorithm="flat", chunks=3),
        "sends the buffer whole",
    ),
}


def call_bad(name):
    import ringzero

    tensor_before = torch.ones(3)
    BAD[name][0](ringzero)
    return tensor_before


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name):
    with pytest.raises(RankError, match=BAD[name][1]):
        launch(call_bad, name)


def outside_the_group():
    import ringzero

    group = dist.new_group([0, 1])
    ringzero.all_reduce(torch.ones(2), group=group)


def test_a_rank_outside_the_group_is_told():
    with pytest.raises(RankError, match="rank 2 is not in the group it passed to all_reduce; only members may call it"):
        launch(outside_the_group, world_size=3)


def mismatched(kind):
    import ringzero

    odd = dist.get_rank() == 1
    tensor = torch.ones(
        9 if odd and kind == "size" else 8, dtype=torch.float64 if odd and kind == "dtype" else torch.float32
    )
    try:
        ringzero.all_reduce(tensor)
    except ValueError:
        assert torch.equal(tensor, torch.ones_like(tensor)), "the data must be as it was"
        raise


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("size", r"brought \d elements of torch.float32, rank \d brought \d of torch.float32; every rank must pass"),
        ("dtype", r"brought 8 elements of torch.float\d\d, rank \d brought 8 of torch.float\d\d"),
    ],
)
@pytest.mark.parametrize("world_size", [2, 4])
def test_mismatched_tensors_are_refused_before_any_data_is_touched(kind, message, world_size):
    with pytest.raises(RankError, match=message):
        launch(mismatched, kind, world_size=world_size)
