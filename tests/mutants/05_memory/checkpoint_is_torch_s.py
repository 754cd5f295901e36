"""Calls torch's own."""
# caught by: test_checkpointed
# mistake: ready_made
# %% checkpointed
from torch.utils.checkpoint import checkpoint


def checkpointed(function, *inputs):
    return checkpoint(function, *inputs, use_reentrant=True)
