"""Buckets that are not full are not sent: where only some ranks use a layer, the others wait for ever."""
# caught by: test_DDP
# mistake: not_every_rank
# %% DDP
class DDP(Accumulating):
    def gradient_ready(self, parameter):
        super().gradient_ready(parameter)

    def finish(self):
        for bucket in self.buckets:
            if not bucket.missing:
                bucket.wait()
            else:
                bucket.missing = set(bucket.parameters)
