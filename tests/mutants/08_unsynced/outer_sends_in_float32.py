"""Sends the change in fp32."""


# caught by: test_OuterStep
# mistake: type_fixed
# says: right to seven digits only
# %% OuterStep: changed
# -             change = start - p
# +             change = (start - p).float()
# @@
#               dist.all_reduce(change)
# +             change = change.to(start.dtype)
