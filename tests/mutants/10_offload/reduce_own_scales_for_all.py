"""All parts are scaled by the scales of rank 0's."""


# caught by: test_quantised_reduce_scatter
# mistake: one_for_all
# %% quantised_reduce_scatter: changed
# -     return sum(dequantise(got[r, :mine], got_scales[r], block) for r in range(n))
# +     return sum(dequantise(got[r, :mine], got_scales[0], block) for r in range(n))
