"""The parts of ``make gpu``, in order of worth. Their limits add up to more than there is: few need theirs."""

from typing import NamedTuple

HERE = "ringzero.measure.gpu"


class Skip(Exception):  # noqa: N818  (it is no error)
    """A part raises it, with a sentence, where this machine lacks what it needs."""


class Part(NamedTuple):
    """``rows`` is "module:function", a function of the device ("cuda") that yields rows; ``limit`` is in seconds."""

    name: str
    shows: str
    limit: float
    rows: str


PARTS = (
    Part("tests", "tests/gpu, what needs one rank", 150, f"{HERE}.pytests:one_rank"),
    Part("copies", "copies between host and device, by size, pinned or not", 40, f"{HERE}.copies:rows"),
    Part("products", "matrix products by shape and dtype", 40, f"{HERE}.products:rows"),
    Part("offload", "a step with its states on the host, beside its copies", 60, f"{HERE}.offload:rows"),
    Part("memory", "bytes of model states and of a step's peak, beside the allocator's", 60, f"{HERE}.memory:rows"),
    Part("clocks", "one product by three clocks", 30, f"{HERE}.clocks:rows"),
    Part("layer_norm", "layer_norm in the profile: from the call to its kernel", 40, f"{HERE}.profiled:layer_norm"),
    Part("kernel", "a CUDA kernel of one's own in the profile", 120, f"{HERE}.profiled:kernel"),
    Part("ddp", "a DDP step beside torch's", 60, f"{HERE}.steps:rows"),
    Part("two_ranks", "tests/gpu with two ranks, on one GPU if there is no other", 120, f"{HERE}.pytests:two_ranks"),
    Part("labs", "the labs' solutions with two ranks on NCCL", 300, f"{HERE}.pytests:labs"),
)
