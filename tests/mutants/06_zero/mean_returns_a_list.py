"""A reduce-scatter and a shard for each parameter, in a list, where one tensor was asked for."""
# caught by: test_mean_gradient
# mistake: wrong_kind
# says: mean_gradient returned [tensor
# %% mean_gradient: changed
# -     vector = torch.cat([gradient.reshape(-1) for gradient in gradients])
# @@
# -     vector /= dist.get_world_size()
# -     return reduce_scatter(vector).clone()
# +     return [reduce_scatter(gradient.reshape(-1) / dist.get_world_size()).clone() for gradient in gradients]
