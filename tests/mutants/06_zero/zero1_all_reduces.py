"""All-reduces the gradients, then steps the shard and gathers: three times the parameters."""


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
        self.gradients = []
        for flat in self.flats:
            gradient = torch.empty_like(flat.whole)
            gradient[flat.owned] = mean_gradient(flat)
            self.gradients.append(all_gather(gradient)[flat.owned].clone())

    def step(self):
        """Step what this rank owns; afterwards all ranks have all parameters."""
        for i, flat in enumerate(self.flats):
            adamw(flat.shard, self.gradients[i], self.states[i])
            all_gather(flat.whole)
            self.gradients[i] = None
