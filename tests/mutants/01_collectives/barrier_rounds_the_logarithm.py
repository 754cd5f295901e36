"""round(log2 N) rounds: right for 1 to 4 ranks, one too few for 5."""
# caught by: test_barrier
# mistake: some_ranks_only
# %% barrier: changed
# -     for k in range((n - 1).bit_length()):
# +     from math import log2
# +
# +     for k in range(round(log2(n))):
