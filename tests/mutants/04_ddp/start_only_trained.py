"""Frozen parameters are not broadcast, since they get no gradient."""
# caught by: test_start_alike
# mistake: some_parameters_forgotten
# %% start_alike
def start_alike(module):
    for p in module.parameters():
        if p.requires_grad:
            dist.broadcast(p.detach(), src=0)
    for buffer in module.buffers():
        dist.broadcast(buffer, src=0)
