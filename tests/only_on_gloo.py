"""Programs that give the right result on gloo and are wrong on NCCL: each function is one, run by three ranks or more.

The line that is wrong says ``# WRONG``; the docstring, what is wrong with it. ``PROGRAMS`` are all of them.
"""

import threading
import time

import torch
import torch.distributed as dist


def _neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    return (rank + 1) % n, (rank - 1) % n


def ring_of_single_messages():
    """Every rank's send stands before its receive."""
    after, before = _neighbours()
    arrived = torch.empty(4)
    works = [dist.isend(torch.ones(4), after), dist.irecv(arrived, before)]  # WRONG
    for work in works:
        work.wait()
    return arrived


def ring_that_receives_first():
    """Every rank's receive stands before its send."""
    after, before = _neighbours()
    arrived = torch.empty(4)
    received = dist.irecv(arrived, before)  # WRONG
    dist.isend(torch.ones(4), after).wait()
    received.wait()
    return arrived


def ring_with_a_blocking_receive():
    """The send is asynchronous, and yet the receive cannot begin before it is over."""
    after, before = _neighbours()
    arrived = torch.empty(4)
    sent = dist.isend(torch.ones(4), after)  # WRONG
    dist.recv(arrived, before)
    sent.wait()
    return arrived


def neighbours_on_both_sides():
    """Sends to two neighbours, then receives from both: a halo exchange without a batch."""
    after, before = _neighbours()
    left, right = torch.empty(2), torch.empty(2)
    works = [dist.isend(torch.ones(2), after), dist.isend(torch.ones(2), before)]  # WRONG
    works += [dist.irecv(left, before), dist.irecv(right, after)]
    for work in works:
        work.wait()
    return left + right


def pair_that_sends_at_once():
    """Ranks 0 and 1 exchange, both send first."""
    arrived = torch.zeros(3)
    if dist.get_rank() < 2:
        sent = dist.isend(torch.ones(3), 1 - dist.get_rank())  # WRONG
        dist.irecv(arrived, 1 - dist.get_rank()).wait()
        sent.wait()
    return arrived


def message_across_a_collective():
    """Rank 0 posts its send before the all-reduce, rank 1 its receive after."""
    rank, x, y = dist.get_rank(), torch.ones(3), torch.ones(5)
    sent = dist.isend(x, 1) if rank == 0 else None  # WRONG
    dist.all_reduce(y)
    if sent is not None:
        sent.wait()
    if rank == 1:
        dist.recv(x, 0)
    return y


def receive_across_a_barrier():
    """Rank 0 posts its receive before the barrier, rank 1 sends after."""
    rank, x = dist.get_rank(), torch.ones(3)
    received = dist.irecv(x, 1) if rank == 0 else None  # WRONG
    dist.barrier()
    if rank == 1:
        dist.send(x, 0)
    if received is not None:
        received.wait()
    return x


def tags_instead_of_order():
    """Two messages with tags, received in the other order: NCCL has no tags."""
    first, second = torch.ones(3), torch.full((3,), 2.0)
    if dist.get_rank() == 0:
        works = [dist.isend(first, 1, tag=1), dist.isend(second, 1, tag=2)]  # WRONG
    elif dist.get_rank() == 1:
        works = [dist.irecv(second, 0, tag=2), dist.irecv(first, 0, tag=1)]
    else:
        works = []
    for work in works:
        work.wait()
    return first


def tags_of_different_sizes():
    """The same with messages of two sizes."""
    small, large = torch.ones(3), torch.ones(30)
    if dist.get_rank() == 0:
        works = [dist.isend(small, 1, tag=1), dist.isend(large, 1, tag=2)]  # WRONG
    elif dist.get_rank() == 1:
        works = [dist.irecv(large, 0, tag=2), dist.irecv(small, 0, tag=1)]
    else:
        works = []
    for work in works:
        work.wait()
    return small


def receive_from_anyone():
    """NCCL cannot receive from any rank."""
    x = torch.ones(2)
    if dist.get_rank() == 0:
        for _ in range(dist.get_world_size() - 1):
            dist.recv(x)  # WRONG
    else:
        dist.send(x, 0)
    return x


def sum_read_before_the_wait():
    """The all-reduce may still be writing."""
    x = torch.ones(4)
    work = dist.all_reduce(x, async_op=True)
    time.sleep(0.2)
    doubled = x * 2  # WRONG
    work.wait()
    return doubled


def message_read_before_the_wait():
    """So may a receive."""
    x, after = torch.zeros(4), torch.zeros(4)
    if dist.get_rank() == 0:
        dist.send(torch.ones(4), 1)
    elif dist.get_rank() == 1:
        work = dist.irecv(x, 0)
        time.sleep(0.2)
        after = x + 1  # WRONG
        work.wait()
    return after


def buffer_used_again_before_the_wait():
    """The send may still be reading."""
    x = torch.ones(4)
    if dist.get_rank() == 0:
        work = dist.isend(x, 1)
        time.sleep(0.2)
        x.zero_()  # WRONG
        work.wait()
    elif dist.get_rank() == 1:
        dist.recv(x, 0)
    return torch.ones(1)


def bucket_filled_before_the_wait():
    """A gradient is added to a bucket that is on its way."""
    bucket, gradient = torch.zeros(8), torch.ones(4)
    work = dist.all_reduce(bucket[:4], async_op=True)
    time.sleep(0.2)
    bucket[2:6].add_(gradient)  # WRONG
    work.wait()
    return bucket


def step_before_the_wait():
    """The optimizer steps with a gradient that is still being summed."""
    weight = torch.nn.Parameter(torch.ones(4))
    weight.grad = torch.ones(4)
    optimizer = torch.optim.SGD([weight], lr=0.1, foreach=False)
    work = dist.all_reduce(weight.grad, async_op=True)
    time.sleep(0.2)
    optimizer.step()  # WRONG
    work.wait()
    return weight.detach()


def broadcast_of_what_changes():
    """The root changes what it broadcasts."""
    x = torch.ones(4)
    work = dist.broadcast(x, 0, async_op=True)
    time.sleep(0.2)
    x.mul_(2)  # WRONG
    work.wait()
    return x


def gathered_and_read_before_the_wait():
    """The parts may not be there."""
    parts = [torch.empty(2) for _ in range(dist.get_world_size())]
    work = dist.all_gather(parts, torch.ones(2), async_op=True)
    time.sleep(0.2)
    total = torch.stack(parts).sum(0)  # WRONG
    work.wait()
    return total


def input_of_a_reduce_scatter_changed():
    """Its input may still be read."""
    n = dist.get_world_size()
    parts, shard = [torch.ones(2) for _ in range(n)], torch.empty(2)
    work = dist.reduce_scatter(shard, parts, async_op=True)
    time.sleep(0.2)
    parts[0].fill_(9)  # WRONG
    work.wait()
    return shard


def looked_at_through_numpy():
    """So is what NumPy shows."""
    x = torch.ones(4)
    work = dist.all_reduce(x, async_op=True)
    time.sleep(0.2)
    seen = float(x.numpy().sum())  # WRONG
    work.wait()
    return torch.tensor(seen)


def send_that_nobody_waits_for():
    """A barrier is not a wait for another operation."""
    if dist.get_rank() == 0:
        sent = dist.isend(torch.ones(3), 1)  # WRONG
        dist.barrier()
        return torch.tensor([sent is not None])
    if dist.get_rank() == 1:
        dist.recv(torch.empty(3), 0)
    dist.barrier()
    return torch.ones(1)


def gather_that_only_the_root_waits_for():
    """The other ranks never wait for what they send."""
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.empty(2) for _ in range(n)] if rank == 0 else None
    work = dist.gather(torch.ones(2), parts, 0, async_op=True)  # WRONG
    if rank == 0:
        work.wait()
    time.sleep(0.2)
    return torch.ones(1)


def freed_on_its_way():
    """The memory is given back while the sum is written to it."""
    x = torch.ones(4)
    work = dist.all_reduce(x, async_op=True)
    time.sleep(0.2)
    x.untyped_storage().resize_(0)  # WRONG
    work.wait()
    return torch.ones(1)


def groups_in_an_order_by_rank():
    """Two all-reduces in two groups: rank 0 begins with the other one."""
    other = dist.new_group(list(range(dist.get_world_size())))
    x, y = torch.ones(3), torch.ones(3)
    todo = [(x, None), (y, other)]
    if dist.get_rank() == 0:
        todo.reverse()
    works = [dist.all_reduce(tensor, group=group, async_op=True) for tensor, group in todo]  # WRONG
    for work in works:
        work.wait()
    return x + y


def one_tensor_in_two_groups():
    """Two groups' streams sum up the same tensor side by side."""
    other = dist.new_group(list(range(dist.get_world_size())))
    x = torch.ones(3)
    first = dist.all_reduce(x, async_op=True)
    time.sleep(0.2)
    second = dist.all_reduce(x, group=other, async_op=True)  # WRONG
    first.wait()
    second.wait()
    return x


def two_threads_in_one_group():
    """Which of two threads comes first is left to chance."""
    mine, theirs = torch.ones(3), torch.ones(3)
    turn = [threading.Event(), threading.Event()]

    def second():
        turn[0].wait()
        dist.all_reduce(theirs)
        turn[1].set()
        time.sleep(0.3)

    dist.all_reduce(mine)
    thread = threading.Thread(target=second)
    thread.start()
    turn[0].set()
    turn[1].wait()
    dist.all_reduce(mine)  # WRONG
    thread.join()
    return mine


def read_on_another_stream():
    """A second stream reads what the first one makes, and does not wait for it."""
    streams = torch.get_device_module(torch.ones(1).device)
    x = torch.ones(4) * 2
    with streams.stream(streams.Stream()):
        y = x + 1  # WRONG
    dist.all_reduce(y)
    return y


def waited_on_another_stream():
    """One stream waits for the sum, another one reads it."""
    streams = torch.get_device_module(torch.ones(1).device)
    side, x = streams.Stream(), torch.ones(4)
    work = dist.all_reduce(x, async_op=True)
    with streams.stream(side):
        work.wait()
    time.sleep(0.2)
    return x * 2  # WRONG


def dropped_while_another_stream_reads():
    """A tensor is gone before a second stream has read it: the next one may get its memory."""
    streams = torch.get_device_module(torch.ones(1).device)
    side, x = streams.Stream(), torch.ones(4)
    side.wait_stream(streams.current_stream())
    with streams.stream(side):
        doubled = x * 2  # WRONG
    del x
    others = torch.zeros(4)
    time.sleep(0.2)
    streams.current_stream().wait_stream(side)
    return doubled + others


def event_recorded_too_early():
    """The event is recorded before the wait, so it does not include it."""
    streams = torch.get_device_module(torch.ones(1).device)
    side, ready, x = streams.Stream(), streams.Event(), torch.ones(4)
    side.wait_stream(streams.current_stream())
    with streams.stream(side):
        work = dist.all_reduce(x, async_op=True)
        ready.record()
        work.wait()
    time.sleep(0.2)
    ready.wait()
    return x + 1  # WRONG


def handle_of_each_message_of_a_batch():
    """NCCL returns one handle for the whole batch."""
    after, before = _neighbours()
    arrived = torch.empty(4)
    sends = [dist.P2POp(dist.isend, torch.ones(4), after), dist.P2POp(dist.irecv, arrived, before)]
    sent, received = dist.batch_isend_irecv(sends)  # WRONG
    sent.wait()
    received.wait()
    return arrived


def one_tensor_twice_in_a_batch():
    """What is sent and what arrives share their memory."""
    after, before = _neighbours()
    x = torch.ones(4)
    batch = [dist.P2POp(dist.isend, x, after), dist.P2POp(dist.irecv, x, before)]
    for work in dist.batch_isend_irecv(batch):  # WRONG
        work.wait()
    return x


def bits_combined():
    """NCCL has no bitwise reductions."""
    x = torch.full((4,), 3, dtype=torch.int64)
    dist.all_reduce(x, op=dist.ReduceOp.BAND)  # WRONG
    return x


def sixteen_bit_numbers():
    """NCCL does not know the type int16."""
    x = torch.ones(4, dtype=torch.int16)
    message = dist.P2POp(dist.isend, x, 1) if dist.get_rank() == 0 else dist.P2POp(dist.irecv, x, 0)
    for work in dist.batch_isend_irecv([message]) if dist.get_rank() < 2 else []:  # WRONG
        work.wait()
    return x


PROGRAMS = tuple(
    value for name, value in list(vars().items()) if callable(value) and getattr(value, "__module__", "") == __name__
    and not name.startswith("_")
)  # fmt: skip


def wrong_line(program) -> int:
    """The number of the line that says ``# WRONG``."""
    import inspect

    lines, start = inspect.getsourcelines(program)
    return start + next(i for i, line in enumerate(lines) if "# WRONG" in line)
