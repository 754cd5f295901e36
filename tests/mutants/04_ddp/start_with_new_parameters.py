"""Puts new parameters in: an optimizer made before goes on with the old ones."""
# caught by: test_start_alike
# mistake: copy_or_view
# %% start_alike
def start_alike(module):
    for layer in module.modules():
        for name, p in list(layer.named_parameters(recurse=False)):
            data = p.detach().clone()
            dist.broadcast(data, src=0)
            setattr(layer, name, torch.nn.Parameter(data, requires_grad=p.requires_grad))
    for buffer in module.buffers():
        dist.broadcast(buffer, src=0)
