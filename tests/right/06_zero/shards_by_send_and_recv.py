"""Chunks go straight to the rank that owns them; as many bytes as in a ring."""


# %% mean_gradient
def mean_gradient(flat):
    rank, n = dist.get_rank(), dist.get_world_size()
    vector = torch.cat([torch.zeros(p.numel()) if p.grad is None else p.grad.reshape(-1) for p in flat.parameters])
    for p in flat.parameters:
        p.grad = None
    chunks = [vector[a:b] for a, b in zip(chunk_bounds(len(vector), n)[:-1], chunk_bounds(len(vector), n)[1:])]
    mine = chunks[rank].clone()
    for turn in range(1, n):
        to, come_from = (rank + turn) % n, (rank - turn) % n
        landing = torch.empty_like(mine)
        pairs = [dist.P2POp(dist.isend, chunks[to], to), dist.P2POp(dist.irecv, landing, come_from)]
        for work in dist.batch_isend_irecv(pairs):
            work.wait()
        mine += landing
    return mine / n


# %% Zero1
class Zero1:
    flat_class = Flat

    def __init__(self, layers):
        self.flats = [self.flat_class(layer.parameters()) for layer in layers]
        self.gradients = [None] * len(self.flats)
        self.states = [dict() for _ in self.flats]

    def reduce(self):
        for i in reversed(range(len(self.flats))):
            self.gradients[i] = mean_gradient(self.flats[i])

    def step(self):
        for flat, gradient, state in zip(self.flats, self.gradients, self.states):
            adamw(flat.whole[flat.owned], gradient, state)
        for flat in reversed(self.flats):
            all_gather(flat.whole)
        self.gradients = [None] * len(self.flats)
