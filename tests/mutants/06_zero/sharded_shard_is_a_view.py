"""The shard lies in the memory that is freed."""


# caught by: test_Sharded
# %% Sharded
class Sharded(Flat):
    """As ``Flat``, but ``whole`` has memory only between ``gather()`` and ``free()``; ``shard`` has its own."""

    def __init__(self, parameters):
        super().__init__(parameters)
        self.shard = self.shard
        self.free()

    def gather(self):
        """Let all parameters have their values."""
        self.whole.untyped_storage().resize_(self.whole.nbytes)
        self.whole[self.owned] = self.shard
        all_gather(self.whole)

    def free(self):
        """Give the memory of ``whole`` back."""
        self.whole.untyped_storage().resize_(0)
