"""Forgets to start from the first bucket again in the next step."""
# caught by: test_DDP
# %% DDP
class DDP(Accumulating):
    launched = 0

    def gradient_ready(self, parameter):
        if self.syncing:
            self.bucket_of[parameter].put(parameter)
            self.launch_full_ones()

    def finish(self):
        for bucket in self.buckets:
            for parameter in list(bucket.missing):
                bucket.put(parameter)
        self.launch_full_ones()
        super().finish()

    def launch_full_ones(self):
        while self.launched < len(self.buckets) and not self.buckets[self.launched].missing:
            self.buckets[self.launched].launch()
            self.launched += 1
