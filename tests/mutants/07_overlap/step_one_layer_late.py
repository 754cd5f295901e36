"""Sends a bucket when the layer after it has computed."""
# caught by: test_backward_pass
# mistake: no_overlap
# says: but it left when layer
# %% backward_pass: changed
#       filling, travelling = [], []
# +     full = None
# @@
# -         if sum(4 * gradient.numel() for gradient in filling) >= cap or number == 0:
# -             flat = torch.cat(filling)
# -             work = dist.all_reduce(flat, async_op=True)
# -             travelling.append((work, flat, [gradient.numel() for gradient in filling]))
# -             filling = []
# +         if full:
# +             flat = torch.cat(full)
# +             travelling.append((dist.all_reduce(flat, async_op=True), flat, [each.numel() for each in full]))
# +             full = None
# +         if sum(4 * gradient.numel() for gradient in filling) >= cap or number == 0:
# +             full, filling = filling, []
# +     flat = torch.cat(full)
# +     travelling.append((dist.all_reduce(flat, async_op=True), flat, [each.numel() for each in full]))
