"""Sends when the gradient that came last is as large as the cap."""
# caught by: test_backward_pass
# mistake: threshold_ignored
# %% backward_pass: changed
# -         if sum(4 * gradient.numel() for gradient in filling) >= cap or number == 0:
# +         if 4 * filling[-1].numel() >= cap or number == 0:
