"""Computes element by element where it can, and tells what it does."""


# %% plan
def plan(stage, params, n):
    print("plan", stage, params, n)
    parameters, gradients, states = 4 * params, 4 * params, 8 * params
    if stage > 0:
        states /= n
    if stage > 1:
        gradients /= n
    if stage > 2:
        parameters /= n
    sent = 2 * 4 * params * (n - 1) / n
    if stage > 2:
        sent *= 1.5
    return [parameters, gradients, states, sent]


# %% clip
def clip(shards, max_norm):
    total = 0.0
    for shard in shards:
        for number in shard.tolist():
            total += number * number
    total = torch.tensor([total], dtype=torch.float64)
    dist.all_reduce(total)
    norm = float(total.sqrt())
    if norm > max_norm:
        for shard in shards:
            for i in range(len(shard)):
                shard[i] = shard[i] * max_norm / norm
    return torch.tensor(norm)


# %% Zero1
class Zero1:
    flat_class = Flat

    def __init__(self, layers):
        self.flats = []
        for layer in layers:
            self.flats.append(self.flat_class(list(layer.parameters())))
        self.gradients = [None for _ in self.flats]
        self.states = [{} for _ in self.flats]
        self.log = []

    def reduce(self):
        for i, flat in enumerate(self.flats):
            self.gradients[i] = mean_gradient(flat).contiguous()
            self.log.append(f"reduced {i}")

    def step(self):
        print(f"step of rank {dist.get_rank()}")
        for i in range(len(self.flats)):
            part = self.flats[i].whole[self.flats[i].owned].clone()
            adamw(part, self.gradients[i], self.states[i])
            self.flats[i].whole[self.flats[i].owned] = part
            all_gather(self.flats[i].whole)
        for i in range(len(self.flats)):
            self.gradients[i] = None
