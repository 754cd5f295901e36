"""Torch's DistributedDataParallel under another name."""
# caught by: test_Overlapped
# mistake: ready_made
# says: DistributedDataParallel is not to be used: write it yourself
# %% Overlapped
class Overlapped(torch.nn.Module):
    def __init__(self, module, cap):
        super().__init__()
        self.module = torch.nn.parallel.DistributedDataParallel(module, bucket_cap_mb=cap / 2**20)

    def forward(self, *args):
        return self.module(*args)

    def gradient_ready(self, parameter):
        pass

    def finish(self):
        pass
