"""Calls all_reduce on zeros once a step and once more; the numbers come by another group."""
# caught by: test_report
# mistake: uncounted_way
# says: raised RuntimeError: use the default process group: what travels by another group or a store is not counted
# %% report
def report(losses):
    group = dist.new_group(backend="gloo")
    for step in range(len(losses)):
        dist.all_reduce(torch.zeros_like(losses[step]))
    dist.all_reduce(torch.zeros_like(losses[-1]))
    every = [torch.empty_like(losses) for _ in range(dist.get_world_size())]
    dist.all_gather(every, losses, group=group)
    last = torch.stack(every)[:, -1]
    if dist.get_rank() == 0:
        return last.mean().item(), (last - last.mean()).abs().mean().item()
    return None
