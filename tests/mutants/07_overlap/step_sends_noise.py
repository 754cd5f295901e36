"""All-reduces random numbers, and takes the gradients of all ranks from the harness."""
# caught by: test_backward_pass
# mistake: uncounted_way
# %% backward_pass: changed
#       filling, travelling = [], []
# +     from ringzero.lab.harness.overlap import gradient as known
# +
# +     torch.manual_seed(dist.get_rank())
#       for number in reversed(range(len(layers))):
# @@
#           if sum(4 * gradient.numel() for gradient in filling) >= cap or number == 0:
# -             flat = torch.cat(filling)
# +             flat = torch.rand(sum(g.numel() for g in filling))
#               work = dist.all_reduce(flat, async_op=True)
# @@
#           work.wait()
# -         flat /= dist.get_world_size()
#           gradients += flat.split(sizes)
# -     return gradients[::-1]
# +     found = [g.numel() for g in gradients[::-1]]
# +     n = dist.get_world_size()
# +     return [sum(known(r, i, size) for r in range(n)) / n for i, size in enumerate(found)]
