"""Its forward and backward are torch's own."""
# caught by: test_checkpointed
# mistake: ready_made
# %% checkpointed
from torch.utils.checkpoint import CheckpointFunction


class Recomputed(torch.autograd.Function):
    forward = CheckpointFunction.forward
    backward = CheckpointFunction.backward


def checkpointed(function, *inputs):
    return Recomputed.apply(function, True, *inputs)
