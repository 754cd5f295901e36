"""The tokens are for the counters; torch's own barrier does the waiting."""


# caught by: test_barrier
# mistake: ready_made
# says: called barrier; build it from send and recv
# %% barrier: changed
#       token, landing = torch.zeros(1), torch.empty(1)
# +     dist.barrier()
