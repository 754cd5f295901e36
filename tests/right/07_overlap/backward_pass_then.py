"""Divides in a callback of the future, when an all-reduce is over."""


# %% backward_pass
def backward_pass(layers, cap):
    n, futures, bucket = dist.get_world_size(), [], []

    def averaged(flat):
        return lambda _: flat.div_(n)

    for i in reversed(range(len(layers))):
        bucket.append(layers[i].backward())
        if sum(g.nbytes for g in bucket) >= cap or i == 0:
            flat, sizes = torch.cat(bucket), [g.numel() for g in bucket]
            futures.append((dist.all_reduce(flat, async_op=True).get_future().then(averaged(flat)), sizes))
            bucket = []
    gradients = [part for future, sizes in futures for part in future.wait().split(sizes)]
    gradients.reverse()
    return gradients
