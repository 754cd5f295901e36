"""Returns the rank's own gradients; the sums are thrown away."""
# caught by: test_backward_pass
# mistake: not_exchanged
# says: that is the rank's own, and not the mean
# %% backward_pass: changed
# -             flat = torch.cat(filling)
# +             flat, own = torch.cat(filling), torch.cat(filling)
# @@
# -             travelling.append((work, flat, [gradient.numel() for gradient in filling]))
# +             travelling.append((work, own, [gradient.numel() for gradient in filling]))
# @@
# -         flat /= dist.get_world_size()
