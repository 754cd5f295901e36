"""Everything waits for finish: silent inside, right, and no overlap left."""
# caught by: test_Accumulating
# %% Accumulating
class Accumulating(Overlapped):
    syncing = True

    @contextmanager
    def no_sync(self):
        before, self.syncing = self.syncing, False
        try:
            yield
        finally:
            self.syncing = before

    def gradient_ready(self, parameter):
        if self.syncing:
            self.bucket_of[parameter].put(parameter)

    def finish(self):
        for bucket in self.buckets:
            bucket.launch()
        super().finish()
