"""A loop that ends one piece too early."""
# caught by: test_pipelined_broadcast
# mistake: last_left_out
# %% pipelined_broadcast: changed
# -     place = (rank - root) % n  # how far down the chain
# +     place = (rank - root) % n
# @@
# -     for start, stop in pairwise(bounds):
# -         piece = tensor[start:stop]
# +     for i in range(chunks - 1):
# +         piece = tensor[bounds[i] : bounds[i + 1]]
