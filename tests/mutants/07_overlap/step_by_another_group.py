"""Zeros travel in buckets; the gradients go through a group of their own."""
# caught by: test_backward_pass
# mistake: uncounted_way
# says: use the default process group: what travels by another group or a store is not counted
# %% backward_pass: changed
#       filling, travelling = [], []
# +     group = dist.new_group(backend="gloo")
# @@
# -             work = dist.all_reduce(flat, async_op=True)
# +             work = dist.all_reduce(torch.zeros_like(flat), async_op=True)
# +             dist.all_reduce(flat, group=group)
