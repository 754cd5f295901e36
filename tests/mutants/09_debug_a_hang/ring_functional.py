"""A functional collective."""
# caught by: test_ring_all_reduce
# mistake: ready_made
# %% ring_all_reduce
import torch.distributed._functional_collectives as funcol


def ring_all_reduce(tensor):
    tensor.copy_(funcol.wait_tensor(funcol.all_reduce(tensor, "sum", list(range(dist.get_world_size())))))
