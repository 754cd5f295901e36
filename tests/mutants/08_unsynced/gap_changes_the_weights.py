"""The mean is taken out of the weights that were given, in place."""


# caught by: test_metropolis
# mistake: changes_its_input
# says: gap changed the weights that it was given
# %% metropolis: changed
# -     magnitudes = torch.linalg.eigvalsh(torch.tensor(weights, dtype=torch.float64)).abs().sort().values
# -     return 1 - magnitudes[-2].item() if len(weights) > 1 else 1.0
# +     for row in weights:
# +         row[:] = [each - 1 / len(weights) for each in row]
# +     return 1 - torch.linalg.eigvalsh(torch.tensor(weights, dtype=torch.float64)).abs().max().item()
