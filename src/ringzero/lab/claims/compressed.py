"""Claims about runs of ``harness.compressed``: what few bytes say of a gradient, and what is made up for later."""

from collections import Counter

import torch

from ringzero.lab.claims import values
from ringzero.lab.claims.collectives import given
from ringzero.lab.claims.local_steps import size_of
from ringzero.lab.harness import compressed
from ringzero.lab.runs import Run


def _vectors(run, kind=None, seed=None):
    kind, numel = kind or run.option("kind", "normal"), run.option("size")
    seed = run.option("seed") if seed is None else seed
    return [compressed.vector_of(kind, numel, seed, rank) for rank in range(run.world_size)]


def _differ(what, got, right, rank, tolerance=1e-5):
    return values.close_by_name(what, [{"vector": got}], {"vector": right}, tolerance, first_rank=rank)


# ``top_k``


def keeps_the_largest(run: Run) -> str | None:
    """Of a rank's vector ``mine`` has the k numbers of the largest magnitude, to the last bit, and zeros."""
    k = run.option("k")
    right = [compressed.largest(k)(vector) for vector in _vectors(run)]
    for rank, (report, vector) in enumerate(zip(run.reports, right, strict=True)):
        got = report.mine
        if isinstance(got, torch.Tensor) and got.shape == vector.shape and not torch.equal(got, vector):
            found, due = int(got.count_nonzero()), int(vector.count_nonzero())
            if found != due:
                return f"on rank {rank} mine has {found} numbers that are not 0, expected {due}"
            if torch.equal(got, vector.abs()):
                return f"on rank {rank} mine has magnitudes: the signs are lost"
            if said := _other_places(run, rank, got):
                return f"on rank {rank} mine has other numbers than it should: {said}"
    got = [report.mine for report in run.reports]
    return values.equal("mine", got, right) or _not_fp32("mine", got)


def _other_places(run, rank, got):
    """Where the numbers are that a rank kept, in words, or None."""
    vectors, k = _vectors(run), min(run.option("k"), run.option("size"))
    places = {
        "they are the largest ones with their signs; asked for are the largest magnitudes": vectors[rank],
        "they are at the places that rank 0 keeps": vectors[0].abs(),
    }
    for said, sizes in places.items():
        kept = torch.zeros_like(got)
        kept[sizes.topk(k).indices] = vectors[rank][sizes.topk(k).indices]
        if torch.equal(got, kept):
            return said
    return None


@given(keeps_the_largest)
def is_the_mean_of_what_was_kept(run: Run) -> str | None:
    """``mean`` is the mean over ranks of what each has kept."""
    kept = torch.stack([compressed.largest(run.option("k"))(vector) for vector in _vectors(run)]).double()
    right = kept.mean(0)
    for rank, report in enumerate(run.reports):
        if why := _differ("in mean the", report.mean, right, rank):
            last = kept[0].clone()
            for vector in kept:
                last[vector != 0] = vector[vector != 0]
            others = {
                "where several ranks sent a number, only one of them counts": last / run.world_size,
                "divide by the number of ranks, also where few of them sent": kept.sum(0)
                / (kept != 0).sum(0).clamp(min=1),
            }
            said = [said for said, other in others.items() if not _differ("", report.mean, other, rank)]
            return "; ".join([why, *said[:1]])
    return _not_fp32("mean", [report.mean for report in run.reports])


@given(is_the_mean_of_what_was_kept)
def sends_8_bytes_a_number(run: Run) -> str | None:
    """A rank gives k indices of 4 bytes and k numbers of 4 bytes to the all-gather, and nothing else."""
    if run.world_size == 1:
        return None
    numel = run.option("size")
    due = 8 * min(run.option("k"), numel)
    for rank, operations in enumerate(run.operations):
        given_away = sum(op.bytes for op in operations)
        if given_away != due:
            each = f"{due // 8} numbers and their indices, 4 bytes each, are {due:,}; the vector is {4 * numel:,}"
            return f"rank {rank} gave all_gather {given_away:,} bytes; {each}"
    return None


@given(sends_8_bytes_a_number)
def sends_what_it_kept(run: Run) -> str | None:
    """The bytes that a rank gives away are those of its k indices, as int32, and numbers, in any order."""
    if run.world_size == 1 or run.option("kind") == "zeros":
        return None
    for rank, (report, vector) in enumerate(zip(run.reports, _vectors(run), strict=True)):
        places = vector.abs().topk(min(run.option("k"), vector.numel())).indices
        if vector.any() and _bytes_of(report.sent) != _bytes_of([places.int(), vector[places]]):
            return f"rank {rank} gave all_gather bytes that are not its {len(places)} indices and numbers"
    return None


def _bytes_of(tensors):
    return Counter(b"".join(tensor.contiguous().reshape(-1).numpy().tobytes() for tensor in tensors))


def leaves_its_vector(run: Run) -> str | None:
    """The vector that was given stays what it was, and is no part of what is returned."""
    for rank, report in enumerate(run.reports):
        if not report.kept:
            return f"rank {rank} changed the vector it was given"
        if not getattr(report, "new", True):
            return f"what rank {rank} returned is not two new vectors: two of vector, mean and mine lie in one memory"
        if getattr(report, "again", False):
            return f"what rank {rank} returned is overwritten by the next call, which returns the same memory"
    return None


# ``feed_back``


LEFT_OUT = {  # what a memory may be, of gradient, compressed vector, what was kept of it, and the mean of what was kept
    "": lambda gradient, vector, mine, mean: vector - mine,
    "it is the gradient alone": lambda gradient, vector, mine, mean: torch.zeros_like(vector),
    "what was left out before that step is lost": lambda gradient, vector, mine, mean: gradient - mine,
    "it remembers what the mean lacks, not what this rank left out": lambda gradient, vector, mine, mean: vector - mean,
    "it remembers all of the sum, also what was sent": lambda gradient, vector, mine, mean: vector,
    "it is taken off, not added: the memory is the sum less what was sent": lambda g, vector, mine, mean: mine - vector,
}


def _fed_back(run, left_out=LEFT_OUT[""]):
    """``(compressed, means)``: of each step the vectors of all ranks, and the mean."""
    keep, ranks = compressed.keeps(run.option("kind", "largest"), run.option("k")), range(run.world_size)
    memory, vectors, means = [torch.zeros(run.option("size"), device="cpu") for _ in ranks], [], []
    for step in range(run.option("steps", 5)):
        gradients = _gradients(run, step)
        vectors.append([gradient + left for gradient, left in zip(gradients, memory, strict=True)])
        kept = [keep(vector) for vector in vectors[-1]]
        means.append(torch.stack(kept).mean(0))
        memory = [left_out(*each, means[-1]) for each in zip(gradients, vectors[-1], kept, strict=True)]
    return vectors, means


def _gradients(run, step):
    """Those of all ranks in a step."""
    kind = "zeros on odd" if step == run.option("idle") else "normal"
    return _vectors(run, kind, run.option("seed") + 50 * step)


def adds_what_was_left_out(run: Run) -> str | None:
    """In each step a rank compresses its gradient plus all that it has left out so far."""
    vectors, _ = _fed_back(run)
    for rank, report in enumerate(run.reports):
        if len(report.compressed) != len(vectors):
            return f"rank {rank} called compress {len(report.compressed)} times in {len(vectors)} steps"
    for step, right in enumerate(vectors):
        for rank, report in enumerate(run.reports):
            got = report.compressed[step]
            if why := _differ(f"in step {step + 1} the compressed", got, right[rank], rank, 1e-4):
                return "; ".join([why, *_remembered(run, step, rank, got)[:1]])
    return None


def _remembered(run, step, rank, got):
    """What the memory may have been instead, in words."""
    if step == 0:
        return ["in the first step nothing was left out yet, by this object"]
    others = {said: _fed_back(run, left_out)[0][step][rank] for said, left_out in LEFT_OUT.items() if said}
    gradients = _gradients(run, step)
    memories = torch.stack(_fed_back(run)[0][step]) - torch.stack(gradients)
    others["it is the mean of all ranks' memories"] = gradients[rank] + memories.mean(0)
    part = ((got - gradients[rank]) @ memories[rank] / memories[rank].square().sum()).item()
    others[f"only {part:.3g} times what was left out is added"] = gradients[rank] + part * memories[rank]
    return [said for said, vector in others.items() if not _differ("", got, vector, rank, 1e-4)]


@given(adds_what_was_left_out)
def returns_the_mean(run: Run) -> str | None:
    """``mean`` returns the mean that ``compress`` returned, and sends nothing else."""
    vectors, means = _fed_back(run)
    for rank, report in enumerate(run.reports):
        for step, right in enumerate(means):
            if why := _differ(f"in step {step + 1} the returned", report.means[step], right, rank, 1e-4):
                mine = compressed.keeps(run.option("kind", "largest"), run.option("k"))(vectors[step][rank])
                own = not _differ("", report.means[step], mine, rank, 1e-4)
                return f"{why}; that is what this rank sent, not the mean" if own else why
        calls = len(run.operations[rank])
        if calls != len(means):
            return f"rank {rank} communicated {calls} times in {len(means)} steps; compress does it once in each"
    return None


@given(adds_what_was_left_out)
def leaves_its_gradient(run: Run) -> str | None:
    """The gradients that were given stay what they were."""
    return next(
        (f"rank {r} changed a gradient it was given" for r, report in enumerate(run.reports) if not report.kept), None
    )


def comes_near_the_best(run: Run) -> str | None:
    """Descent with few numbers of each gradient ends near the point where the ranks' mean loss is least."""
    numel, seed, ranks = run.option("size"), run.option("seed"), run.world_size
    best = torch.stack([compressed.target_of(numel, seed, rank, ranks) for rank in range(ranks)]).mean(0)
    start = best.norm().item()
    for rank, report in enumerate(run.reports):
        far = (report.x - best).norm().item()
        if not far <= NEAR * start:
            return f"rank {rank} ends {far:.3g} away from the best point; it began {start:.3g} away"
    return None


NEAR = 0.25  # of the distance at the start


# ``vote``


def packs_eight_in_a_byte(run: Run) -> str | None:
    """Number i is bit i % 8 of byte i // 8, 1 unless it is below 0; bits that are left over are 0."""
    for rank, (report, vector) in enumerate(zip(run.reports, _vectors(run), strict=True)):
        got, right = report.packed, compressed.packed_of(vector)
        if got.dtype != torch.uint8:
            return f"what was packed is {got.dtype}, expected torch.uint8"
        if tuple(got.shape) != tuple(right.shape):
            return f"{vector.numel()} numbers were packed into shape {tuple(got.shape)}, expected {tuple(right.shape)}"
        for i in (got != right).nonzero().flatten().tolist()[:1]:
            signs = " ".join("-" if x < 0 else "+" for x in vector[8 * i : 8 * i + 8].tolist())
            why = f"on rank {rank} byte {i} is {got[i]:08b}, expected {right[i]:08b} for the signs {signs}"
            return why if vector.any() else f"{why}; these are 0.0 and -0.0, of which none is below 0"
    return None


def unpacks(run: Run) -> str | None:
    """Bytes that are packed so are turned into 1.0 and -1.0 again."""
    right = [torch.where(vector >= 0, 1.0, -1.0) for vector in _vectors(run)]
    got = [report.unpacked for report in run.reports]
    changed = [rank for rank, report in enumerate(run.reports) if not report.packed_kept]
    return (
        values.equal("what was unpacked", got, right)
        or _not_fp32("what was unpacked", got)
        or (f"on rank {changed[0]} unpack_signs changed the bytes that it was given" if changed else None)
    )


def _not_fp32(what, got):
    """Why the tensors are not in fp32, or None."""
    wrong = [tensor.dtype for tensor in got if tensor.dtype != torch.float32]
    return f"{what} is {wrong[0]}, expected torch.float32" if wrong else None


def votes(run: Run) -> str | None:
    """Each number is 1.0 where at least as many ranks are not below 0 as are, else -1.0."""
    signs = torch.stack([torch.where(vector >= 0, 1.0, -1.0) for vector in _vectors(run)])
    right = torch.where(signs.sum(0) >= 0, 1.0, -1.0)
    why = values.equal("the vote", [report.voted for report in run.reports], [right] * run.world_size)
    for rank, report in enumerate(run.reports):
        got, tied = report.voted, signs.sum(0) == 0
        if why is None or got.shape != right.shape or torch.equal(got.to(right.dtype), right):
            continue
        if torch.equal(got[~tied], right[~tied]):
            return f"on rank {rank} the vote is wrong where as many ranks say 1 as say -1: that is 1.0"
        if torch.equal(got, signs[rank]):
            return f"{why}; that is the rank's own sign, not the vote"
        above = int((signs[:, (got != right).nonzero()[0, 0]] > 0).sum())
        return f"{why}; there {above} of {run.world_size} ranks have a number that is not below 0"
    return why or _not_fp32("the vote", [report.voted for report in run.reports])


@given(votes)
def sends_a_bit_a_number(run: Run) -> str | None:
    """A rank gives its packed signs to the all-gather, and nothing else; packing and unpacking send nothing."""
    if run.world_size == 1:
        return None
    for rank, (report, vector) in enumerate(zip(run.reports, _vectors(run), strict=True)):
        right, size = compressed.packed_of(vector), sum(op.bytes for op in run.operations[rank])
        if report.before_the_vote:
            return f"rank {rank} sent something while it packed or unpacked"
        if size != right.numel():
            due = f"{vector.numel()} signs are {right.numel():,}"
            return f"rank {rank} gave all_gather {size:,} bytes; {due}"
        if _bytes_of(report.sent) != _bytes_of([right]):
            return f"rank {rank} gave all_gather {size:,} bytes that are not its packed signs"
    return None


# ``power``


def approximations(
    run: Run, warm: bool = True, orthonormal: bool = True, first_mean: bool = True, orthogonal: bool = True
) -> list[torch.Tensor]:
    """P Qᵀ of every step in one process that has all matrices, in fp64; each begins with the Q before if ``warm``.

    Without ``orthonormal`` the columns of P stay as they are; without ``first_mean`` those of each rank's P are made
    orthonormal before the mean is taken; without ``orthogonal`` they have length 1 and that is all.
    """
    shape, r, seed, kind = (run.option(name) for name in ("shape", "r", "seed", "kind"))
    first = q = compressed.start_of(shape, r, seed).double()
    found = []
    for step in range(run.option("steps", 3)):
        matrices = [compressed.matrix_of(shape, seed, step, rank, kind or "normal") for rank in range(run.world_size)]
        mean = torch.stack(matrices).double().mean(0)
        q = q if warm else first
        p = torch.linalg.qr(mean @ q).Q if orthonormal else mean @ q
        if not orthogonal:
            p = mean @ q / (mean @ q).norm(dim=0)
        if not first_mean:
            p = torch.stack([torch.linalg.qr(matrix.double() @ q).Q for matrix in matrices]).mean(0)
        q = mean.T @ p
        found.append(p @ q.T)
    return found


def as_one_process(run: Run) -> str | None:
    """Every step is power iteration on the mean matrix, from the Q of the step before."""
    for step, expected in enumerate(approximations(run)):
        for rank, report in enumerate(run.reports):
            got = report.means[step]
            if why := _matrix(f"in step {step + 1} the approximate", got, expected, rank):
                return "; ".join([why, *_other_iteration(run, step, rank, got)[:1]])
    return None


def _other_iteration(run, step, rank, got):
    """What went otherwise, in words."""
    if got.isnan().any():
        return ["there is a nan: was something divided by 0?"]
    said = []
    if step and not _matrix("", got, approximations(run, warm=False)[step], rank):
        said.append("it began with the first Q again, not with the Q of the step before")
    early = approximations(run, first_mean=False)[step]
    if run.world_size > 1 and not _matrix("", got / got.norm(), early / early.norm(), rank):
        said.append("each rank made its own P orthonormal before the all-reduce; sum first")
    if not _matrix("", got, approximations(run, orthogonal=False)[step], rank):
        said.append("the columns of P have length 1 but are not orthogonal")
    plain = approximations(run, orthonormal=False)[step]
    if plain.any() and not _matrix("", got / got.norm(), plain / plain.norm(), rank):
        said.append("it is a multiple of what comes without orthonormal columns")
    if any(not torch.equal(got, report.means[step]) for report in run.reports):
        said.append("other ranks have other results")
    return said


def _matrix(what, got, right, rank, tolerance=1e-3):
    return values.close_by_name(what, [{"matrix": got}], {"matrix": right}, tolerance, first_rank=rank)


def comes_to_the_best_of_its_rank(run: Run) -> str | None:
    """After many steps on one matrix the result is the best that rank r allows, from the singular values."""
    shape, r, seed = run.option("shape"), run.option("r"), run.option("seed")
    last = run.option("steps") - 1
    parts = [compressed.matrix_of(shape, seed, last, rank, run.option("kind")) for rank in range(run.world_size)]
    u, sizes, v = torch.linalg.svd(torch.stack(parts).double().mean(0), full_matrices=False)
    best = (u[:, :r] * sizes[:r]) @ v[:r]
    for rank, report in enumerate(run.reports):
        if why := _matrix("after the last step the", report.means[-1], best, rank, 1e-2):
            stays = run.option("kind") == "zeros first" and not report.means[-1].any()
            return why + "; after a matrix of zeros Q is 0, and stays 0" * stays
    return None


@given(as_one_process)
def sends_two_thin_matrices(run: Run) -> str | None:
    """A step gives r columns of rows numbers and r of columns numbers to the all-reduce, and nothing else."""
    if run.world_size == 1:
        return None
    (rows, columns), r = run.option("shape"), run.option("r")
    due, steps = 4 * r * (rows + columns), run.option("steps", 3)
    for rank, report in enumerate(run.reports):
        before = 0
        for step, stop in enumerate(report.sent_after, 1):
            size, before = size_of(report.sent[before:stop]), stop
            if size != due:
                formula = f"{r} columns of {rows} and of {columns} numbers are {due:,}"
                return f"in step {step} rank {rank} gave all_reduce {size:,} bytes; {formula}"
        total = sum(op.bytes for op in run.operations[rank])
        if total != steps * due:
            return f"rank {rank} gave all_reduce {total:,} bytes in {steps} steps, expected {steps * due:,}"
    return None


@given(sends_two_thin_matrices)
def sends_its_own_product(run: Run) -> str | None:
    """The first thing that a rank sends is its own matrix times Q, perhaps over N."""
    if run.world_size == 1:
        return None
    shape, r, seed, kind = (run.option(name) for name in ("shape", "r", "seed", "kind"))
    for rank, report in enumerate(run.reports):
        matrix = compressed.matrix_of(shape, seed, 0, rank, kind or "normal")
        p, sent = matrix @ compressed.start_of(shape, r, seed), report.sent[0].reshape(-1)
        if sent.numel() != p.numel() or not any(
            _near(sent, each.reshape(-1)) for each in (p, p / run.world_size, p.T, p.T / run.world_size)
        ):
            return f"rank {rank} began with numbers that are not its matrix times Q"
    return None


def _near(got, right):
    return (got - right).abs().max() <= 1e-4 * right.abs().max()


@given(as_one_process)
def stays_alike(run: Run) -> str | None:
    """All ranks have the same bits after every step, and the matrices and the Q that were given are what they were."""
    for step in range(run.option("steps", 3)):
        if why := values.same(f"the matrix of step {step + 1}", [report.means[step] for report in run.reports]):
            return why
    for rank, report in enumerate(run.reports):
        if not report.kept:
            return f"rank {rank} changed its matrix"
        if not report.q_kept:
            return f"rank {rank} changed the q that it was made with; keep the new one in a tensor of its own"
    return None
