"""``is_completed`` until all is over; 1 − 1/T for (T − 1)/T."""


# %% largest_degree
def largest_degree(flops, bandwidth, width, element):
    t, h = 1024, 4096
    T = 1
    while element * t * h * (1 - 1 / (T + 1)) / bandwidth <= 2 * t * h * width / (T + 1) / flops:
        T += 1
    return T


# %% backward_pass
def backward_pass(layers, cap):
    import time

    n = dist.get_world_size()
    sent, b = [], []
    for i, layer in list(enumerate(layers))[::-1]:
        b.append(layer.backward())
        if sum(x.numel() * x.element_size() for x in b) >= cap or i == 0:
            flat = torch.cat(b) / n
            sent.append((dist.all_reduce(flat, async_op=True), flat, [len(x) for x in b]))
            b = []
    while not all(w.is_completed() for w, _, _ in sent):
        time.sleep(0.0005)
    return [x for _, flat, s in sent[::-1] for x in reversed(flat.split(s))]
