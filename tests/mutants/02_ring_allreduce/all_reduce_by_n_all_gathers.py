"""Gathers each rank's tensor as chunks of a larger one and adds them up."""


# caught by: test_ring_all_reduce
# mistake: other_algorithm
# says: 3 times the buffer and not 1.5
# %% ring_all_reduce: changed
# -     ring_reduce_scatter(tensor)
# -     ring_all_gather(tensor)
# +     rank, n = dist.get_rank(), dist.get_world_size()
# +     rows = tensor.new_zeros(n, tensor.numel())
# +     rows[rank] = tensor
# +     ring_all_gather(rows.view(-1))
# +     tensor.copy_(rows.sum(0))
