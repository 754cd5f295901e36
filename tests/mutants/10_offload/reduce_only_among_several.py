"""A single rank gets nothing: nobody sent it a part."""
# caught by: test_quantised_reduce_scatter
# mistake: special_case
# says: on rank 0 the chunk is too far off in 50 of 50 numbers
# %% quantised_reduce_scatter: changed
# -     return sum(dequantise(got[r, :mine], got_scales[r], block) for r in range(n))
# +     if n == 1:
# +         return torch.zeros(mine)
# +     return sum(dequantise(got[r, :mine], got_scales[r], block) for r in range(n))
