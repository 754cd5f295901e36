"""Gives the slope for each byte of the buffer as β."""


# caught by: test_fit_alpha_beta
# mistake: units
# says: beta is 1.5e-09, expected 1e-09
# %% fit_alpha_beta: changed
# -     rows = torch.stack([rounds / t, rounds * size / world_size / t], dim=1)
# +     rows = torch.stack([rounds / t, size / t], dim=1)
