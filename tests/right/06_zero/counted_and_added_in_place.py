"""Counts the parameters that are ready, adds each pass to the shard that is there, and looks for NaN on the way."""


# %% mean_gradient
def mean_gradient(flat):
    vector = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).view(-1) for p in flat.parameters])
    assert torch.isfinite(vector).all()
    for p in flat.parameters:
        p.grad = None
    return reduce_scatter(vector).clone() / dist.get_world_size()


# %% Zero2
class Zero2(Zero1):
    def __init__(self, layers):
        import functools

        super().__init__(layers)
        self.waiting = [len(flat.parameters) for flat in self.flats]
        for i, flat in enumerate(self.flats):
            for p in flat.parameters:
                p.register_post_accumulate_grad_hook(functools.partial(self.hook, i))

    def hook(self, i, parameter):
        self.waiting[i] -= 1
        self.gradient_ready(i)

    def gradient_ready(self, i):
        if self.waiting[i] == 0:
            self.waiting[i] = len(self.flats[i].parameters)
            shard = mean_gradient(self.flats[i])
            if self.gradients[i] is None:
                self.gradients[i] = torch.zeros_like(shard)
            self.gradients[i].add_(shard)

    def reduce(self):
        pass


# %% Zero3
class Zero3(Zero2):
    flat_class = Sharded

    def __init__(self, layers):
        super().__init__(layers)
        for i, layer in enumerate(layers):
            layer.register_forward_pre_hook(self.come(i))
            layer.register_full_backward_pre_hook(self.come(i))
            layer.register_forward_hook(self.go(i))

    def come(self, i):
        def hook(layer, *_):
            self.flats[i].gather()

        return hook

    def go(self, i):
        def hook(layer, *_):
            self.flats[i].free()

        return hook

    def gradient_ready(self, i):
        complete = self.waiting[i] == 0
        super().gradient_ready(i)
        if complete:
            self.flats[i].free()

    def step(self):
        for i in range(len(self.flats)):
            adamw(self.flats[i].shard, self.gradients.pop(0), self.states[i])
            self.gradients.append(None)
