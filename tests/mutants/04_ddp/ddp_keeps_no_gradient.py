"""A parameter that this rank did not use ends without a gradient here, and the ranks drift apart."""
# caught by: test_DDP
# %% DDP
class DDP(Accumulating):
    launched = 0

    def gradient_ready(self, parameter):
        if self.syncing:
            self.bucket_of[parameter].put(parameter)
            self.launch_full_ones()

    def finish(self):
        unused = [p for b in self.buckets for p in b.missing]
        for bucket in self.buckets:
            for parameter in list(bucket.missing):
                bucket.put(parameter)
        self.launch_full_ones()
        super().finish()
        self.launched = 0
        for parameter in unused:
            parameter.grad = None

    def launch_full_ones(self):
        while self.launched < len(self.buckets) and not self.buckets[self.launched].missing:
            self.buckets[self.launched].launch()
            self.launched += 1
