"""The difference between the two largest eigenvalues, as they come."""


# caught by: test_metropolis
# mistake: rule_of_thumb
# says: the gap is 2, expected 0
# %% metropolis: changed
# -     magnitudes = torch.linalg.eigvalsh(torch.tensor(weights, dtype=torch.float64)).abs().sort().values
# +     magnitudes = torch.linalg.eigvalsh(torch.tensor(weights, dtype=torch.float64))
