"""A new vector at each gather: autograd holds on to the old one."""


# caught by: test_Sharded
# %% Sharded
class Sharded(Flat):
    """As ``Flat``, but ``whole`` has memory only between ``gather()`` and ``free()``; ``shard`` has its own."""

    def __init__(self, parameters):
        super().__init__(parameters)
        self.shard = self.shard.clone()
        self.free()

    def gather(self):
        """Let all parameters have their values."""
        self.whole = torch.empty_like(self.whole)
        for p, part in zip(self.parameters, self.whole.split([p.numel() for p in self.parameters]), strict=True):
            p.data = part.view(p.shape)
        self.whole[self.owned] = self.shard
        all_gather(self.whole)

    def free(self):
        """Give the memory of ``whole`` back."""
        self.whole.untyped_storage().resize_(0)
