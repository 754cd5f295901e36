"""Counts two parameters a layer."""


# caught by: test_Zero2
# mistake: special_case
# %% Zero2: changed
# -         if any(p.grad is None for p in flat.parameters):
# +         if sum(p.grad is not None for p in flat.parameters) < 2:
