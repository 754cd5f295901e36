"""Waits for each bucket by looking whether its numbers have changed."""
# caught by: test_backward_pass
# mistake: no_overlap
# %% backward_pass: changed
#               flat = torch.cat(filling)
# +             own = flat.clone()
#               work = dist.all_reduce(flat, async_op=True)
# @@
#               filling = []
# +             while dist.get_world_size() > 1 and torch.equal(flat, own):
# +                 time.sleep(0.0001)
#       gradients = []
