"""Calls ringzero's own all-reduce."""
# caught by: test_ring_all_reduce
# mistake: ready_made
# %% ring_all_reduce
def ring_all_reduce(tensor):
    import ringzero

    ringzero.all_reduce(tensor)
