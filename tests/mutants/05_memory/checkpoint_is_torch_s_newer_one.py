"""Calls torch's own, of the kind that is no autograd.Function."""
# caught by: test_checkpointed
# mistake: ready_made
# says: what the library and torch have of this is not to be used here: write it yourself
# %% checkpointed
from torch.utils.checkpoint import checkpoint


def checkpointed(function, *inputs):
    return checkpoint(function, *inputs, use_reentrant=False)
