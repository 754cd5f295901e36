"""It steps away from where the ranks went."""


# caught by: test_OuterStep
# mistake: reversed
# says: it steps away from where the ranks went
# %% OuterStep: changed
# -             change = start - p
# +             change = p - start
