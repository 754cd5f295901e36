"""Counts up until it fits, as one would by hand; slow and right."""


# %% largest_degree
def largest_degree(flops, bandwidth, width, element):
    ranks = 1
    while element * ranks / bandwidth <= 2 * width / flops:
        ranks += 1
    return ranks


# %% all_reduces
def all_reduces(backwards, sizes, cap, alpha, beta):
    buckets, full, total = [[]], [], 0.0
    for layer in range(len(sizes) - 1, -1, -1):
        total += backwards[layer]
        buckets[-1].append(sizes[layer])
        if sum(buckets[-1]) >= cap:
            full.append(total)
            buckets.append([])
    if not buckets[-1]:
        buckets.pop()
    else:
        full.append(total)
    schedule, before = [], 0.0
    for bucket, ready in zip(buckets, full):
        begin = ready if ready > before else before
        before = begin + alpha + beta * sum(bucket)
        schedule.append([begin, before])
    return tuple(schedule)


# %% exposed
def exposed(operations):
    """Takes every computing out of every communicating, piece by piece."""
    left = []
    for op in sorted((op for op in operations if op.stream == "communication"), key=lambda op: op.start):
        begin = max([op.start, *(end for _, end in left)])
        if begin < op.end:
            left.append((begin, op.end))
    for op in operations:
        if op.stream == "compute":
            pieces = []
            for begin, end in left:
                if begin < min(end, op.start):
                    pieces.append((begin, min(end, op.start)))
                if max(begin, op.end) < end:
                    pieces.append((max(begin, op.end), end))
            left = pieces
    return sum(end - begin for begin, end in left)


# %% least_micro_batches
def least_micro_batches(stages, share, pieces):
    for m in range(1, 10_000_000):
        length = m + (stages - 1) / pieces  # in micro-batches on one stage
        if (stages - 1) / pieces / length <= share:
            return m


# %% kept
def kept(i, stages, micro_batches):
    """Plays the stage: forwards first, then one backward and one forward in turn."""
    forwards, backwards, now, most = 0, 0, 0, 0
    while backwards < micro_batches:
        if forwards < micro_batches and now < stages - i:
            forwards, now = forwards + 1, now + 1
        else:
            backwards, now = backwards + 1, now - 1
        most = max(most, now)
    return most


# %% backward_pass
def backward_pass(layers, cap):
    class Bucket:
        def __init__(self):
            self.layers, self.gradients, self.bytes = [], [], 0

        def add(self, number, gradient):
            self.layers.append(number)
            self.gradients.append(gradient)
            self.bytes += gradient.numel() * gradient.element_size()

        def send(self):
            self.flat = torch.cat(self.gradients).div_(dist.get_world_size())
            self.work = dist.all_reduce(self.flat, async_op=True)

        def unpack(self, result):
            self.work.wait()
            at = 0
            for number, gradient in zip(self.layers, self.gradients):
                result[number] = gradient.copy_(self.flat[at : at + gradient.numel()])
                at += gradient.numel()

    sent, bucket = [], Bucket()
    for number, layer in reversed([*enumerate(layers)]):
        bucket.add(number, layer.backward())
        if bucket.bytes >= cap:
            bucket.send()
            sent.append(bucket)
            bucket = Bucket()
    if bucket.layers:
        bucket.send()
        sent.append(bucket)
    result = [None] * len(layers)
    for bucket in sent:
        bucket.unpack(result)
    return result


# %% plan
def plan(nodes):
    return {"data": 8 * nodes, "tensor": 1, "pipeline": 1, "stage": 3, "recomputation": "full"}
