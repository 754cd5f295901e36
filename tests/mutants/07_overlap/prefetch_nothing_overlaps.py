"""Computes after the gather of the layer that comes."""
# caught by: test_forward_pass
# mistake: no_overlap
# says: that is without any overlap
# %% forward_pass: changed
# -         done.append(max(gathered, done[-1] if done else 0) + forwards[layer])
# +         done.append(max(gathered, done[-1] if done else 0) + forwards[layer])
# +         gathered = done[-1]
