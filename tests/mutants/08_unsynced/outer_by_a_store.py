"""The changes travel through the default store; what is all-reduced is zeros."""


# caught by: test_OuterStep
# mistake: uncounted_way
# says: raised RuntimeError: use the default process group: what travels by another group or a store is not counted
# %% OuterStep: changed
# -             dist.all_reduce(change)
# -             change /= dist.get_world_size()
# +             store, name = dist.distributed_c10d._get_default_store(), str(id(p))
# +             store.set(f"{name} {dist.get_rank()}", change.numpy().tobytes())
# +             dist.all_reduce(torch.zeros_like(change))
