"""Everyone has its own signs: nobody votes."""


# caught by: test_majority
# says: on rank 0 the vote is wrong in 22 of 64 elements
# %% majority: changed
# -     votes = sum(unpack_signs(each, x.numel()) for each in everyones)
# +     votes = unpack_signs(packed, x.numel())
