"""A circle of sends, work that nobody waits for, and a thread that never ends."""


# verdict: limit
# %% first
# says: cycle
def first(tensor):
    other = torch.empty_like(tensor)
    dist.send(tensor, 1 - dist.get_rank())
    dist.recv(other, 1 - dist.get_rank())
    return tensor + other


# %% second
# says: wait
def second(tensor):
    dist.all_reduce(tensor, async_op=True)
    return tensor


# %% third
# points: 2
def third(tensor):
    import threading

    threading.Thread(target=__import__("time").sleep, args=(3000,)).start()
    dist.all_reduce(tensor)
    return tensor
