"""Keeps a flat buffer for each bucket and returns views of it: the next step writes over the gradients."""
# caught by: test_backward_pass
# mistake: overwritten
# %% backward_pass: changed
# + BUFFERS = {}
# +
# +
#   def backward_pass(layers, cap):
# @@
#           if sum(4 * gradient.numel() for gradient in filling) >= cap or number == 0:
# -             flat = torch.cat(filling)
# +             key = number, sum(g.numel() for g in filling)
# +             if key not in BUFFERS:
# +                 BUFFERS[key] = torch.empty(key[1])
# +             flat = BUFFERS[key]
# +             torch.cat(filling, out=flat)
#               work = dist.all_reduce(flat, async_op=True)
