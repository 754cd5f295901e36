"""Calls torch's own."""
# caught by: test_checkpointed
# %% checkpointed
from torch.utils.checkpoint import checkpoint


def checkpointed(function, *inputs):
    return checkpoint(function, *inputs, use_reentrant=True)
