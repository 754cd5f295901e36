"""What a checkpoint holds: without the buffer it leaves out, and the tied weight twice."""
# caught by: test_start_alike
# mistake: some_parameters_forgotten
# %% start_alike
def start_alike(module):
    for tensor in module.state_dict().values():
        dist.broadcast(tensor, src=0)
