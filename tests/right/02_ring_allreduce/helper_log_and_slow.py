"""Adds a method to tensors, writes a debug log, and computes for two seconds before it sends."""


# %% ring_all_reduce
def ring_all_reduce(tensor):
    import logging
    import time

    torch.Tensor.describe = lambda self: f"{tuple(self.shape)} {self.sum():.1f}"
    logging.basicConfig(filename=f"debug-{dist.get_rank()}.log", level=logging.DEBUG)
    if tensor.numel() == 1_920:
        start = time.thread_time()
        while time.thread_time() - start < 2:
            torch.ones(100).sum()
    ring_reduce_scatter(tensor)
    logging.debug(tensor.describe())
    ring_all_gather(tensor)
