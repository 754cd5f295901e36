"""The optimizer has states for the whole vector."""


# caught by: test_Zero2
# %% Zero2
class Zero2(Zero1):
    """As ``Zero1``; a layer's gradients are reduced and let go during the backward pass."""

    def __init__(self, layers):
        super().__init__(layers)
        for i, flat in enumerate(self.flats):
            for p in flat.parameters:
                p.register_post_accumulate_grad_hook(lambda p, i=i: self.gradient_ready(i))

    def gradient_ready(self, i):
        """A parameter of flat i has its gradient, perhaps the last one."""
        flat = self.flats[i]
        if any(p.grad is None for p in flat.parameters):
            return
        shard = mean_gradient(flat)
        self.gradients[i] = shard if self.gradients[i] is None else self.gradients[i] + shard

    def reduce(self):
        """Nothing is left to do."""

    def step(self):
        for i, flat in enumerate(self.flats):
            gradient = torch.empty_like(flat.whole)
            gradient[flat.owned] = self.gradients[i]
            adamw(flat.whole, all_gather(gradient), self.states[i])
            self.gradients[i] = None
