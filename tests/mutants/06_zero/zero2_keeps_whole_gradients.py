"""Reduces early, but puts the gradients back where they were until the end."""


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
        whole = [p.grad for p in flat.parameters]
        shard = mean_gradient(flat)
        self.kept = {**getattr(self, "kept", {}), i: whole}
        self.gradients[i] = shard if self.gradients[i] is None else self.gradients[i] + shard

    def reduce(self):
        self.kept = {}
