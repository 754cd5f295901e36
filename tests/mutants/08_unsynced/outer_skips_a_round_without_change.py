"""Where a rank changed nothing it sends nothing: with others that did, they wait."""


# caught by: test_OuterStep
# mistake: special_case
# says: never entered all_reduce
# %% OuterStep: changed
#               change = start - p
# +             if not change.any():
# +                 continue
