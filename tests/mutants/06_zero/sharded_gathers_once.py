"""Keeps what it gathered the first time, and never gathers again."""


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
        self.whole.untyped_storage().resize_(self.whole.nbytes)
        if not hasattr(self, "kept"):
            self.whole[self.owned] = self.shard
            self.kept = all_gather(self.whole).clone()
        self.whole.copy_(self.kept)

    def free(self):
        """Give the memory of ``whole`` back."""
        self.whole.untyped_storage().resize_(0)
