"""Passes the pieces on through memory of its own and never writes them into the tensor."""
# caught by: test_pipelined_broadcast
# mistake: copy_or_view
# %% pipelined_broadcast: changed
# -     place = (rank - root) % n  # how far down the chain
# +     place = (rank - root) % n
# @@
# -     for start, stop in pairwise(bounds):
# -         piece = tensor[start:stop]
# +     for start, stop in zip(bounds, bounds[1:]):
# +         piece = tensor[start:stop].clone()
