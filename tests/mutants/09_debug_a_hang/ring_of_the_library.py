"""ringzero's own."""
# caught by: test_ring_all_reduce
# mistake: ready_made
# %% ring_all_reduce
def ring_all_reduce(tensor):
    import ringzero

    ringzero.all_reduce(tensor, algorithm="ring")
