"""Divides by five at most."""
# caught by: test_train_with_hooks
# mistake: some_ranks_only
# says: with 6 ranks
# %% train_with_hooks: changed
# -         parameter.grad /= n
# +         parameter.grad /= min(n, 5)
