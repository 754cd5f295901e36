"""Calls the barrier that was to be written."""
# caught by: test_barrier
# mistake: ready_made
# %% barrier
def barrier():
    dist.barrier()
