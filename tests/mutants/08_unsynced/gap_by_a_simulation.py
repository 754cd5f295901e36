"""Mixes thirty times and looks how far it came: only about right."""


# caught by: test_metropolis
# mistake: rule_of_thumb
# says: the gap is
# %% metropolis: changed
# -     magnitudes = torch.linalg.eigvalsh(torch.tensor(weights, dtype=torch.float64)).abs().sort().values
# -     return 1 - magnitudes[-2].item() if len(weights) > 1 else 1.0
# +     w = torch.tensor(weights, dtype=torch.float64)
# +     x = torch.arange(len(weights), dtype=torch.float64) ** 2
# +     x = x - x.mean()
# +     before = x.norm().item()
# +     for _ in range(30):
# +         x = w @ x
# +     return 1 - (x.norm().item() / before) ** (1 / 30) if before else 1.0
