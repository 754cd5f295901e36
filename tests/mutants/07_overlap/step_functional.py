"""A functional collective."""
# caught by: test_backward_pass
# mistake: ready_made
# %% backward_pass: changed
# -             work = dist.all_reduce(flat, async_op=True)
# +             import torch.distributed._functional_collectives as funcol
# +
# +             flat = funcol.all_reduce(flat, 'sum', list(range(dist.get_world_size())))
# +             work = None
# @@
# -         work.wait()
# -         flat /= dist.get_world_size()
# +         flat = funcol.wait_tensor(flat) / dist.get_world_size()
