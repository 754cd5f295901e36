"""Gives the parameters new memory with the new x in it."""
# caught by: test_OuterStep
# mistake: copy_or_view
# %% OuterStep: changed
# -             p.copy_(start)
# +             p.data = start.clone()
