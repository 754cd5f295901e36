"""Exact fractions; the vector is filled parameter by parameter; the shard is divided, not the vector."""


# %% plan
def plan(stage, params, n):
    from fractions import Fraction

    shard = Fraction(params, n)
    held = [params if stage < first else shard for first in (3, 2, 1)]
    return held[0] * 4, held[1] * 4, held[2] * 8, 4 * (2 + (stage == 3)) * (params - shard)


# %% Flat
class Flat:
    def __init__(self, parameters):
        self.parameters = tuple(parameters)
        first = self.parameters[0]
        self.whole = torch.empty(sum(p.numel() for p in self.parameters), dtype=first.dtype, device=first.device)
        start = 0
        with torch.no_grad():
            for p in self.parameters:
                place = self.whole[start : start + p.numel()].view_as(p)
                place.copy_(p)
                p.data = place
                start += p.numel()
        bounds = chunk_bounds(start, dist.get_world_size())
        self.owned = slice(int(bounds[dist.get_rank()]), int(bounds[dist.get_rank() + 1]), 1)

    @property
    def shard(self):
        return self.whole[self.owned]


# %% mean_gradient
def mean_gradient(flat):
    vector = torch.zeros_like(flat.whole)
    start = 0
    for p in flat.parameters:
        if p.grad is not None:
            vector[start : start + p.numel()].copy_(p.grad.flatten())
        p.grad = None
        start += p.numel()
    return reduce_scatter(vector) / dist.get_world_size()


# %% Sharded
class Sharded(Flat):
    shard = None

    def __init__(self, parameters):
        super().__init__(parameters)
        self.shard = self.whole[self.owned].detach().clone()
        self.free()

    def gather(self):
        storage = self.whole.untyped_storage()
        if storage.nbytes() == 0:
            storage.resize_(self.whole.numel() * self.whole.element_size())
        with torch.no_grad():
            self.whole.zero_()
            self.whole[self.owned].copy_(self.shard)
        all_gather(self.whole)

    def free(self):
        if self.whole.untyped_storage().nbytes():
            self.whole.untyped_storage().resize_(0)
