"""Asks before it computes: a single rank sends nothing, zeros are not decomposed, attributes are made when needed."""


# %% local_sgd
def local_sgd(model, optimizer, loss_of, batches, h):
    def meet():
        if dist.get_world_size() == 1:
            return
        for name, p in sorted(model.named_parameters()):
            if p.requires_grad:
                total = p.detach().clone()
                dist.all_reduce(total)
                p.data.copy_(total / dist.get_world_size())

    since = 0
    for batch in batches:
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()
        since += 1
        if since == h:
            meet()
            since = 0
    if since:
        meet()


# %% OuterStep
class OuterStep:
    def __init__(self, parameters, lr, momentum):
        self.parameters, self.lr, self.momentum = parameters, lr, momentum
        self.x = [p.data.clone() for p in parameters]
        self.v = {}

    def step(self):
        for i, p in enumerate(self.parameters):
            mean = p.data.clone()
            if dist.get_world_size() > 1:
                dist.all_reduce(mean)
                mean = mean / dist.get_world_size()
            delta = self.x[i] - mean
            self.v[i] = self.momentum * self.v.get(i, torch.zeros_like(delta)) + delta
            self.x[i] = self.x[i] - self.lr * (delta + self.momentum * self.v[i])
            p.data = self.x[i].clone()
        dist.barrier()


# %% ErrorFeedback
class ErrorFeedback:
    def __init__(self, compress):
        self.compress = compress

    def mean(self, gradient):
        total = gradient.clone()
        if hasattr(self, "memory"):
            total += self.memory
        mean, mine = self.compress(total)
        self.memory = total.sub(mine)
        return mean.clone()


# %% PowerSGD
class PowerSGD:
    def __init__(self, q):
        self.q = q.clone()
        self.n = dist.get_world_size()

    def mean(self, matrix):
        p = torch.mm(matrix, self.q)
        if self.n > 1:
            dist.all_reduce(p)
        p = p / self.n
        if p.norm() > 0:
            p, _ = torch.linalg.qr(p)
        q = matrix.transpose(0, 1).mm(p)
        if self.n > 1:
            dist.all_reduce(q)
        q = q / self.n
        if q.norm() > 0:
            self.q = q
        return p.mm(q.t())
