"""Computes a layer whose parameters have not come."""
# caught by: test_forward_pass
# mistake: too_early
# says: the time is
# %% forward_pass: changed
# -         done.append(max(gathered, done[-1] if done else 0) + forwards[layer])
# +         done.append((done[-1] if done else gathered) + forwards[layer])
