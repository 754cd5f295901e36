"""Frozen parameters are sent, too."""


# caught by: test_local_sgd
# mistake: too_much_sent
# says: after step 3 of 7, with h = 3, rank 0 gave all_reduce 428 bytes, expected 268
# %% local_sgd: changed
# -                 if p.requires_grad:
# +                 if True:
