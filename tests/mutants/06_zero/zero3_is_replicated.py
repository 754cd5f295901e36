"""A replicated model passed off as ZeRO-3."""


# caught by: test_Zero3
# %% Zero3
class Zero3(Zero2):
    """As ``Zero2``; parameters too are there as shards alone, but for the layer that is computed."""

    flat_class = Flat

    def __init__(self, layers):
        super().__init__(layers)

    def gradient_ready(self, i):
        """As in ``Zero2``; when the gradients are reduced, nobody needs the layer any more."""
        super().gradient_ready(i)

    def step(self):
        """Step what this rank owns. The others will ask for it."""
        for i, flat in enumerate(self.flats):
            adamw(flat.shard, self.gradients[i], self.states[i])
            all_gather(flat.whole)
            self.gradients[i] = None
