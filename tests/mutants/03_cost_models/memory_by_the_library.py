"""Asks the library."""
# caught by: test_state_bytes
# mistake: ready_made
# %% state_bytes
def state_bytes(params, stage, n):
    from ringzero.costs import memory

    return memory.model_state_bytes(params, stage, n)
