"""Integers and scales travel as bytes of one message, each part padded to whole blocks."""


# %% quantise
def quantise(x, block):
    pieces = [x[i : i + block].to(torch.float32) for i in range(0, len(x), block)]
    scales = [piece.abs().max() / 127 for piece in pieces]
    integers = [
        torch.zeros_like(piece) if scale == 0 else torch.round(piece / scale).clamp(-127, 127)
        for piece, scale in zip(pieces, scales)
    ]
    if not pieces:
        return torch.empty(0, dtype=torch.int8), torch.empty(0)
    return torch.cat(integers).type(torch.int8), torch.stack(scales)


def dequantise(integers, scales, block):
    numbers = torch.empty(len(integers))
    for i, scale in enumerate(scales):
        numbers[i * block : (i + 1) * block] = integers[i * block : (i + 1) * block] * scale
    return numbers


# %% quantised_gather
def pack(part, length, block):
    """Bytes of a part, as long as those of every other part."""
    blocks = -(-length // block)
    whole = torch.zeros(blocks * block)
    whole[: len(part)] = part
    integers, scales = quantise(whole, block)
    return torch.cat([integers.view(torch.uint8), scales.view(torch.uint8)])


def unpack(message, size, block):
    blocks = len(message) // (block + 4)
    integers, scales = message.split([blocks * block, 4 * blocks])
    return dequantise(integers.view(torch.int8), scales.clone().view(torch.float32), block)[:size]


def quantised_gather(shard, numel, block):
    n = dist.get_world_size()
    sizes = torch.as_tensor(chunk_bounds(numel, n), device="cpu").diff().tolist()
    mine = pack(shard, max(sizes), block)
    messages = [torch.empty_like(mine) for _ in range(n)]
    dist.all_gather(messages, mine)
    return torch.cat([unpack(message, size, block) for message, size in zip(messages, sizes)])


# %% quantised_reduce_scatter
def quantised_reduce_scatter(vector, block):
    n, rank = dist.get_world_size(), dist.get_rank()
    sizes = torch.as_tensor(chunk_bounds(vector.numel(), n), device="cpu").diff().tolist()
    leaving = torch.stack([pack(part, max(sizes), block) for part in vector.split(sizes)])
    arriving = torch.empty_like(leaving)
    all_to_all(arriving.view(-1), leaving.view(-1))
    total = torch.zeros(sizes[rank])
    for message in reversed(arriving):
        total += unpack(message, sizes[rank], block)
    return total
