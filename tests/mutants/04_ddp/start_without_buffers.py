"""Parameters only."""
# caught by: test_start_alike
# mistake: some_parameters_forgotten
# %% start_alike
def start_alike(module):
    for p in module.parameters():
        dist.broadcast(p.detach(), src=0)
