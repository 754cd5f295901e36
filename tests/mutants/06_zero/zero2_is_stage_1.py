"""Reduces when the backward pass is over: stage 1 under another name."""


# caught by: test_Zero2
# %% Zero2
class Zero2(Zero1):
    """As ``Zero1``; a layer's gradients are reduced and let go during the backward pass."""

    def __init__(self, layers):
        super().__init__(layers)

    def gradient_ready(self, i):
        """A parameter of flat i has its gradient, perhaps the last one."""
        flat = self.flats[i]
        if any(p.grad is None for p in flat.parameters):
            return
        shard = mean_gradient(flat)
        self.gradients[i] = shard if self.gradients[i] is None else self.gradients[i] + shard

    def reduce(self):
        super().reduce()
