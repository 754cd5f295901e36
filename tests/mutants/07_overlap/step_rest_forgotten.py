"""Never sends the last bucket if it is not full."""
# caught by: test_backward_pass
# mistake: last_left_out
# says: not a list of
# %% backward_pass: changed
# -         if sum(4 * gradient.numel() for gradient in filling) >= cap or number == 0:
# +         if sum(4 * gradient.numel() for gradient in filling) >= cap:
