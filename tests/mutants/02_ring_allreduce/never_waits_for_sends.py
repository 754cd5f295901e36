"""Waits for what it receives and lets its sends go; the buffer may change under them."""
# caught by: test_ring_all_gather
# mistake: never_waits
# %% ring_all_gather: changed
# -     chunks = [tensor[start:stop] for start, stop in pairwise(bounds)]
# +     chunks = [tensor[start:stop] for start, stop in zip(bounds, bounds[1:])]
# @@
# -         for work in dist.batch_isend_irecv(together):
# -             work.wait()
# +         dist.batch_isend_irecv(together)[1].wait()
