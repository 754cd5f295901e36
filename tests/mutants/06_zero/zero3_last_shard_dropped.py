"""The last rank does not step its shard."""


# caught by: test_Zero3
# %% Zero3
class Zero3(Zero2):
    """As ``Zero2``; parameters too are there as shards alone, but for the layer that is computed."""

    flat_class = Sharded

    def __init__(self, layers):
        super().__init__(layers)
        for layer, flat in zip(layers, self.flats, strict=True):
            layer.register_forward_pre_hook(lambda *_, flat=flat: flat.gather())
            layer.register_forward_hook(lambda *_, flat=flat: flat.free())
            layer.register_full_backward_pre_hook(lambda *_, flat=flat: flat.gather())

    def gradient_ready(self, i):
        """As in ``Zero2``; when the gradients are reduced, nobody needs the layer any more."""
        super().gradient_ready(i)
        if all(p.grad is None for p in self.flats[i].parameters):
            self.flats[i].free()

    def step(self):
        """Step what this rank owns. The others will ask for it."""
        for i, flat in enumerate(self.flats):
            if dist.get_rank() < dist.get_world_size() - 1:
                adamw(flat.shard, self.gradients[i], self.states[i])
            self.gradients[i] = None
