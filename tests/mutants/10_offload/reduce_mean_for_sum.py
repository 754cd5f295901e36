"""The mean over the ranks."""


# caught by: test_quantised_reduce_scatter
# mistake: sum_or_mean
# says: the chunk is the mean over the ranks, expected the sum
# %% quantised_reduce_scatter: changed
# -     return sum(dequantise(got[r, :mine], got_scales[r], block) for r in range(n))
# +     return sum(dequantise(got[r, :mine], got_scales[r], block) for r in range(n)) / n
