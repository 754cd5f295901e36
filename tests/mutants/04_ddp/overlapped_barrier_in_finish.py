"""finish() waits for all ranks, too."""


# caught by: test_Overlapped
# mistake: too_much_sent
# says: called barrier in a step
# %% Overlapped: changed
#               bucket.wait()
# +         dist.barrier()
