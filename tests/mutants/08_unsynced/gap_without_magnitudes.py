"""The second largest eigenvalue, where one below 0 has the largest magnitude."""


# caught by: test_metropolis
# mistake: special_case
# says: the gap is 2, expected 0; that leaves out magnitudes
# %% metropolis: changed
# -     magnitudes = torch.linalg.eigvalsh(torch.tensor(weights, dtype=torch.float64)).abs().sort().values
# +     magnitudes = torch.linalg.eigvalsh(torch.tensor(weights, dtype=torch.float64))
