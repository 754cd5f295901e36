"""Sums a copy."""
# caught by: test_train
# mistake: copy_or_view
# %% train: changed
# -         dist.all_reduce(gradient)
# +         dist.all_reduce(gradient.clone())
