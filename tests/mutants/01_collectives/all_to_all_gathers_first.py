"""Gathers every whole tensor everywhere and picks from it: N times the bytes."""
# caught by: test_all_to_all
# mistake: too_much_sent
# %% all_to_all
def all_to_all(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    wholes = [tensor.clone() for _ in range(n)]
    for k in range(1, n):
        exchange(tensor, (rank + k) % n, wholes[(rank - k) % n], (rank - k) % n)
    return torch.cat([chunks_of(whole)[rank] for whole in wholes])
