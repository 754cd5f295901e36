"""Sorts the sizes and not the times."""


# caught by: test_fit_alpha_beta
# mistake: wrong_place
# %% fit_alpha_beta: changed
# -     size, t = (torch.tensor(x, dtype=torch.float64, device="cpu") for x in (sizes, seconds))
# +     size, t = (torch.tensor(x, dtype=torch.float64, device="cpu") for x in (sorted(sizes), seconds))
