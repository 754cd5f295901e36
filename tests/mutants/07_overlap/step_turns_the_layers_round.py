"""Turns the caller's list of layers round."""
# caught by: test_backward_pass
# mistake: changes_its_input
# %% backward_pass: changed
# -     for number in reversed(range(len(layers))):
# +     layers.reverse()
# +     for number in range(len(layers)):
# @@
# -         if sum(4 * gradient.numel() for gradient in filling) >= cap or number == 0:
# +         if sum(4 * gradient.numel() for gradient in filling) >= cap or number == len(layers) - 1:
