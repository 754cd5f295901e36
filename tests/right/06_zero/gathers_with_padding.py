"""The vector has room for a few elements more at its end; a rank that owns nothing has the slice 0:0."""


# %% Flat
class Flat:
    def __init__(self, parameters):
        self.parameters = [*parameters]
        rank, n = dist.get_rank(), dist.get_world_size()
        numel = sum(p.numel() for p in self.parameters)
        room = torch.zeros(-(-numel // n) * n)
        self.whole = room[:numel]
        with torch.no_grad():
            torch.cat([p.ravel() for p in self.parameters], out=self.whole)
        start = 0
        for p in self.parameters:
            p.data = self.whole.narrow(0, start, p.numel()).reshape(p.shape)
            start += p.numel()
        first, last = (int(x) for x in chunk_bounds(numel, n)[rank : rank + 2])
        self.owned = slice(first, last) if last > first else slice(0, 0)
        self.shard = self.whole.narrow(0, self.owned.start, last - first)
