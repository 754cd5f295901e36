"""Everyone has its own signs: nobody votes."""


# caught by: test_majority
# mistake: not_exchanged
# says: that is the rank's own sign, not the vote
# %% majority: changed
# -     votes = sum(unpack_signs(each, x.numel()) for each in everyones)
# +     votes = unpack_signs(packed, x.numel())
