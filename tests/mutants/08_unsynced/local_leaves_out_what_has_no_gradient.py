"""A parameter without a gradient is left out, and another rank has one: the ranks disagree on what they reduce."""


# caught by: test_local_sgd
# mistake: special_case
# says: ranks disagree
# %% local_sgd: changed
# -                 if p.requires_grad:
# +                 if p.grad is not None:
