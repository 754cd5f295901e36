"""Shards of numel // N elements: the rest belongs to nobody."""


# caught by: test_Flat
# %% Flat
class Flat:
    """``parameters`` laid end to end in one vector, of which this rank owns a shard."""

    def __init__(self, parameters):
        self.parameters = list(parameters)
        self.whole = torch.cat([p.detach().reshape(-1) for p in self.parameters])
        for p, part in zip(self.parameters, self.whole.split([p.numel() for p in self.parameters]), strict=True):
            p.data = part.view(p.shape)
        rank, n = dist.get_rank(), dist.get_world_size()
        start, stop = self.whole.numel() // n * rank, self.whole.numel() // n * (rank + 1)
        self.owned = slice(start, stop)
        self.shard = self.whole[self.owned]
