"""Waits for all futures together, after all layers have computed."""


# %% backward_pass
def backward_pass(layers, cap):
    n = dist.get_world_size()
    gradients, sent, bucket = [None] * len(layers), [], []
    for i in reversed(range(len(layers))):
        bucket.append((i, layers[i].backward()))
        if 4 * sum(g.numel() for _, g in bucket) >= cap or i == 0:
            flat = torch.cat([g for _, g in bucket])
            sent.append((dist.all_reduce(flat, async_op=True).get_future(), flat, bucket))
            bucket = []
    torch.futures.wait_all([future for future, _, _ in sent])
    for _, flat, bucket in sent:
        parts = (flat / n).split([g.numel() for _, g in bucket])
        for (i, _), part in zip(bucket, parts):
            gradients[i] = part
    return gradients
