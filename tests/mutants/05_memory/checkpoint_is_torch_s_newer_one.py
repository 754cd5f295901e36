"""Calls torch's own, of the kind that is no autograd.Function."""
# caught by: test_checkpointed
# mistake: ready_made
# says: the first run recorded a graph: everything inside was kept
# %% checkpointed
from torch.utils.checkpoint import checkpoint


def checkpointed(function, *inputs):
    return checkpoint(function, *inputs, use_reentrant=False)
