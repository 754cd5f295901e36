"""The loss after the step, where this rank's loss before it was asked for."""
# caught by: test_train
# mistake: one_of_a_kind
# %% train: changed
# -         losses.append(error.square().mean().item())
# @@
# -         w -= lr * gradient / dist.get_world_size()
# +         w -= lr * gradient / dist.get_world_size()
# +         losses.append((x @ w - y).square().mean().item())
