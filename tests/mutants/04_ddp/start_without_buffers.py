"""Parameters only."""
# caught by: test_start_alike
# %% start_alike
def start_alike(module):
    for p in module.parameters():
        dist.broadcast(p.detach(), src=0)
