"""The integers are added up before they are scaled, by the mean of the scales."""


# caught by: test_quantised_reduce_scatter
# mistake: one_of_a_kind
# says: on rank 0 the chunk is too far off
# %% quantised_reduce_scatter: changed
# -     return sum(dequantise(got[r, :mine], got_scales[r], block) for r in range(n))
# +     return dequantise(got[:, :mine].sum(0, dtype=torch.int32), got_scales.mean(0), block)
