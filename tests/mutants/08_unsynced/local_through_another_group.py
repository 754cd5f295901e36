"""The data goes through a group of its own; zeros go through the one that is counted."""


# caught by: test_local_sgd
# mistake: uncounted_way
# says: raised RuntimeError: use the default process group: what travels by another group or a store is not counted
# %% local_sgd: changed
# -     for step, batch in enumerate(batches, 1):
# +     other = dist.new_group(backend="gloo")
# +     for step, batch in enumerate(batches, 1):
# @@
# -                     dist.all_reduce(p.data)
# +                     dist.all_reduce(torch.zeros_like(p.data))
# +                     dist.all_reduce(p.data, group=other)
