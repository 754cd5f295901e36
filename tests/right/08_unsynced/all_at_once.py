"""Starts everything, then waits; in double precision; the outer step by torch's own SGD."""


# %% local_sgd
def local_sgd(model, optimizer, loss_of, batches, h):
    n, left = dist.get_world_size(), len(batches)
    for number, batch in enumerate(batches):
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        left -= 1
        if (number + 1) % h and left:
            continue
        with torch.no_grad():
            parts = {p: p.double() / n for p in model.parameters() if p.requires_grad}
            for work in [dist.all_reduce(part, async_op=True) for part in parts.values()]:
                work.wait()
            for p, part in parts.items():
                p.copy_(part)


# %% OuterStep
class OuterStep:
    def __init__(self, parameters, lr, momentum):
        self.parameters = parameters
        self.masters = [torch.nn.Parameter(p.detach().clone()) for p in parameters]
        self.sgd = torch.optim.SGD(self.masters, lr=lr, momentum=momentum, nesterov=momentum > 0)

    @torch.no_grad()
    def step(self):
        sizes = [p.numel() for p in self.parameters]
        flat = torch.cat([(m - p).reshape(-1) for m, p in zip(self.masters, self.parameters)])
        dist.all_reduce(flat)
        for m, part in zip(self.masters, (flat / dist.get_world_size()).split(sizes)):
            m.grad = part.view_as(m)
        self.sgd.step()
        for m, p in zip(self.masters, self.parameters):
            p.data = m.detach().clone()


# %% gossip
def gossip(x, weights):
    row, column = weights[dist.get_rank()], [line[dist.get_rank()] for line in weights]
    rank, n = dist.get_rank(), len(weights)
    stack = torch.stack([x if s == rank else torch.zeros_like(x) for s in range(n)])
    ops = [dist.P2POp(dist.irecv, stack[s], s) for s in range(n) if s != rank and row[s]]
    ops += [dist.P2POp(dist.isend, x.clone(), s) for s in range(n) if s != rank and column[s]]
    if ops:
        [work.wait() for work in dist.batch_isend_irecv(ops)]
    return torch.tensordot(torch.tensor(row, dtype=torch.float64), stack.double(), 1).to(x.dtype)


# %% ErrorFeedback
class ErrorFeedback:
    def __init__(self, compress):
        self.compress, self.sent, self.seen = compress, 0, 0

    def mean(self, gradient):
        self.seen = self.seen + gradient.clone()
        mean, mine = self.compress(self.seen - self.sent)
        self.sent = self.sent + mine
        return mean
