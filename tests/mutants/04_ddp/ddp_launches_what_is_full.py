"""Launches whichever bucket is full: ranks that skip a layer start other all-reduces than the rest."""
# caught by: test_DDP
# mistake: not_every_rank
# %% DDP
class DDP(Accumulating):
    def gradient_ready(self, parameter):
        super().gradient_ready(parameter)

    def finish(self):
        for bucket in self.buckets:
            if bucket.missing:
                for parameter in list(bucket.missing):
                    bucket.put(parameter)
                bucket.launch()
        super().finish()
