"""Messages without a record, records without a message, and a report that is not what the rank recorded."""


# verdict: tampering
# says: the ranks' records are not what crossed the network
# %% first
# says: and has no record of that
def first(tensor):
    other = torch.empty_like(tensor)
    messenger, rank = dist.group.WORLD._messenger, dist.get_rank()
    if rank == 0:
        messenger.send([tensor], 1, 0).wait()
        messenger.recv([other], 1, 0).wait()
    else:
        messenger.recv([other], 0, 0).wait()
        messenger.send([tensor], 0, 0).wait()
    return tensor + other


# %% second
# says: as it recorded
def second(tensor):
    from ringzero.record import recorder

    writer, group, rank = recorder.of_this_process(), dist.group.WORLD, dist.get_rank()
    for kind in ("send", "recv"):
        size = tensor.numel() * 4
        offset = writer.operation(kind, 1 - rank, size, torch.float32, group, 0, lambda _: ("group", []))
        writer.begins_to_wait(offset)
        writer.has_ended(offset)
    dist.all_reduce(tensor)
    return tensor


# %% third
# says: other than
def third(tensor):
    from ringzero.lab.on_rank import Player

    Player._operations = lambda self: []
    dist.all_reduce(tensor)
    return tensor
