"""Takes elements for bytes: buckets are four times as large."""
# caught by: test_backward_pass
# mistake: units
# says: all-reduced
# %% backward_pass: changed
# -         if sum(4 * gradient.numel() for gradient in filling) >= cap or number == 0:
# +         if sum(gradient.numel() for gradient in filling) >= cap or number == 0:
