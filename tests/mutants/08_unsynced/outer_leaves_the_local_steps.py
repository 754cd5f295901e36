"""The next round begins where this rank's own steps ended: the new x is kept, and not written back."""


# caught by: test_OuterStep
# mistake: copy_or_view
# says: nothing but the rank's own steps changed it
# %% OuterStep: changed
# -             p.copy_(start)
