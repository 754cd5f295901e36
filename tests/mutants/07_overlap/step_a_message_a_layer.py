"""Sends every gradient by itself."""
# caught by: test_backward_pass
# mistake: too_much_sent
# says: all-reduced 2000, 2000
# %% backward_pass: changed
# -         if sum(4 * gradient.numel() for gradient in filling) >= cap or number == 0:
# +         if filling:
