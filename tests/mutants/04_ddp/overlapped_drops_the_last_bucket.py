"""The first layers, in the last bucket, are never averaged."""
# caught by: test_Overlapped
# %% Overlapped
class Overlapped(torch.nn.Module):
    def __init__(self, module, cap):
        super().__init__()
        self.module = module
        start_alike(module)
        trained = [p for p in module.parameters() if p.requires_grad]
        sizes = [p.numel() * p.element_size() for p in trained]
        self.buckets = [Bucket([trained[i] for i in members]) for members in assign(sizes, cap)]
        self.bucket_of = {p: bucket for bucket in self.buckets for p in bucket.parameters}
        for p in trained:
            p.register_post_accumulate_grad_hook(self.gradient_ready)

    def forward(self, *args):
        return self.module(*args)

    def gradient_ready(self, parameter):
        bucket = self.bucket_of[parameter]
        bucket.put(parameter)
        if not bucket.missing and bucket is not self.buckets[-1]:
            bucket.launch()

    def finish(self):
        for bucket in self.buckets[:-1]:
            bucket.wait()
        self.buckets[-1].missing = set(self.buckets[-1].parameters)
