"""torch's all_to_all_single with rows that are a list of parts; the sum is taken in float64."""


# %% quantised_reduce_scatter
def quantised_reduce_scatter(vector, block):
    n, rank = dist.get_world_size(), dist.get_rank()
    bounds = torch.as_tensor(chunk_bounds(vector.numel(), n), device="cpu")
    parts = [quantise(vector[a:b], block) for a, b in zip(bounds[:-1], bounds[1:])]
    longest = int(bounds.diff().max())

    def exchanged(rows, length, dtype):
        table = torch.zeros(n, length, dtype=dtype)
        for row, values in zip(table, rows):
            row[: len(values)] = values
        found = torch.zeros_like(table)
        dist.all_to_all_single(found, table)
        return found

    integers = exchanged([part[0] for part in parts], longest, torch.int8)
    scales = exchanged([part[1] for part in parts], -(-longest // block), torch.float32)
    mine = int(bounds[rank + 1] - bounds[rank])
    got = torch.stack([dequantise(i[:mine], s, block) for i, s in zip(integers, scales)])
    return got.double().sum(dim=0).float()
