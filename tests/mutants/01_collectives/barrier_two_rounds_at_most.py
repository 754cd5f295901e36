"""Two rounds at most: enough for 4 ranks."""
# caught by: test_barrier
# mistake: some_ranks_only
# %% barrier: changed
# -     for k in range((n - 1).bit_length()):
# +     for k in range(min(n - 1, 2)):
