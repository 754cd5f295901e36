"""Adds up what comes from the first four ranks."""
# caught by: test_quantised_reduce_scatter
# mistake: some_ranks_only
# %% quantised_reduce_scatter: changed
# -     return sum(dequantise(got[r, :mine], got_scales[r], block) for r in range(n))
# +     return sum(dequantise(got[r, :mine], got_scales[r], block) for r in range(min(n, 4)))
