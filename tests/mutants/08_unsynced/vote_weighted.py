"""Sums what the numbers are, in whole parts, and not their signs."""


# caught by: test_majority
# mistake: wrong_kind
# says: where as many ranks say 1 as say -1
# %% majority: changed
# -     votes = sum(unpack_signs(each, x.numel()) for each in everyones)
# +     votes = sum(unpack_signs(each, x.numel()) for each in everyones) + 0.5 * x.sign()
