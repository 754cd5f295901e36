"""A bucket that is just full waits for one more."""
# caught by: test_backward_pass
# mistake: one_off
# %% backward_pass: changed
# -         if sum(4 * gradient.numel() for gradient in filling) >= cap or number == 0:
# +         if sum(4 * gradient.numel() for gradient in filling) > cap or number == 0:
