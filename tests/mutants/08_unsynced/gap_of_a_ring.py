"""The formula of a ring, for all graphs."""


# caught by: test_metropolis
# mistake: other_algorithms_cost
# says: the gap is 0.333333, expected 0.089316
# %% metropolis: changed
# -     magnitudes = torch.linalg.eigvalsh(torch.tensor(weights, dtype=torch.float64)).abs().sort().values
# -     return 1 - magnitudes[-2].item() if len(weights) > 1 else 1.0
# +     n = len(weights)
# +     ring = (1 + 2 * torch.cos(torch.tensor(2 * torch.pi / n, dtype=torch.float64)).item()) / 3
# +     return 1 - ring if n > 2 else 1.0
