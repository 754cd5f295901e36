"""Numbers of the buffers are found by strides; the mean is made by a pre-divided copy of each gradient."""


# %% Bucket
class Bucket:
    def __init__(self, parameters):
        self.parameters = parameters
        self.flat = parameters[0].new_zeros(sum(p.numel() for p in parameters))
        self.views, start = {}, 0
        for p in parameters:
            self.views[p] = torch.as_strided(self.flat, p.shape, p.stride(), start)
            start += p.numel()
        self.missing = set(parameters)

    def put(self, parameter):
        n = dist.get_world_size()
        gradient = 0.0 if parameter.grad is None else parameter.grad / n
        self.views[parameter].copy_(torch.as_tensor(gradient))
        parameter.grad = self.views[parameter]
        self.missing.remove(parameter)

    def launch(self):
        self.work = dist.all_reduce(self.flat, async_op=True)

    def wait(self):
        self.work.wait()
        self.missing = {*self.parameters}


# %% average_in_hooks
def average_in_hooks(module):
    @torch.no_grad()
    def hook(p):
        mean = p.grad.detach() / dist.get_world_size()
        dist.all_reduce(mean)
        p.grad = mean

    [p.register_post_accumulate_grad_hook(hook) for p in module.parameters() if p.requires_grad]
