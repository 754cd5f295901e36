"""Sends whole numbers, which have as many bytes."""
# caught by: test_backward_pass
# mistake: type_fixed
# says: the gradient of layer 0 is off by up to
# %% backward_pass: changed
# -             flat = torch.cat(filling)
# +             flat = torch.cat(filling).int()
# @@
# -         flat /= dist.get_world_size()
# +         flat = flat / dist.get_world_size()
