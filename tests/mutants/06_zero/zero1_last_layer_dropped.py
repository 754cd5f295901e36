"""The last layer is never stepped."""


# caught by: test_Zero1
# %% Zero1
class Zero1:
    """Trains ``layers`` with AdamW; each rank keeps AdamW's numbers for the shard that it owns."""

    flat_class = Flat

    def __init__(self, layers):
        self.flats = [self.flat_class(layer.parameters()) for layer in layers]
        self.gradients = [None for _ in self.flats]
        self.states = [{} for _ in self.flats]

    def reduce(self):
        """After the backward pass: shards of the mean gradient take the place of the gradients."""
        self.gradients = [mean_gradient(flat) for flat in self.flats]

    def step(self):
        """Step what this rank owns; afterwards all ranks have all parameters."""
        for i, flat in enumerate(self.flats[:-1]):
            adamw(flat.shard, self.gradients[i], self.states[i])
            all_gather(flat.whole)
            self.gradients[i] = None
