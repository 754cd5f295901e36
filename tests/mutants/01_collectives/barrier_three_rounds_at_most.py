"""Three rounds at most: enough up to 8 ranks."""
# caught by: test_barrier
# mistake: some_ranks_only
# %% barrier: changed
# -     for k in range((n - 1).bit_length()):
# +     for k in range(min(3, (n - 1).bit_length())):
