"""Works on one vector of all parameters, and waits for asynchronous all-reduces."""


# %% local_sgd
def local_sgd(model, optimizer, loss_of, batches, h):
    trained = [p for p in model.parameters() if p.requires_grad]
    for start in range(0, len(batches), h):
        for batch in batches[start : start + h]:
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.step()
        vector = torch.nn.utils.parameters_to_vector(trained).detach() / dist.get_world_size()
        dist.all_reduce(vector, async_op=True).wait()
        torch.nn.utils.vector_to_parameters(vector, trained)


# %% OuterStep
class OuterStep:
    def __init__(self, parameters, lr, momentum):
        self.parameters, self.lr, self.momentum = parameters, lr, momentum
        self.start, self.velocity = self.vector(), None

    def vector(self):
        return torch.nn.utils.parameters_to_vector(self.parameters).detach().clone()

    def step(self):
        mean = self.vector()
        dist.all_reduce(mean)
        change = self.start - mean / dist.get_world_size()
        self.velocity = change if self.velocity is None else self.momentum * self.velocity + change
        self.start = self.start - self.lr * change - self.lr * self.momentum * self.velocity
        torch.nn.utils.vector_to_parameters(self.start.clone(), self.parameters)
