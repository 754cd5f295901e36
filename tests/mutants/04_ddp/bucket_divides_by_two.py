"""Divides by the number of ranks it was tried on."""
# caught by: test_Bucket
# %% Bucket
class Bucket:
    def __init__(self, parameters):
        self.parameters = list(parameters)
        sizes = [p.numel() for p in self.parameters]
        self.flat = torch.zeros(sum(sizes))
        parts = self.flat.split(sizes)
        self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts)}
        self.missing = set(self.parameters)

    def put(self, parameter):
        view = self.views[parameter]
        if parameter.grad is None:
            view.zero_()
        else:
            view.copy_(parameter.grad)
        parameter.grad = view
        self.missing.discard(parameter)

    def launch(self):
        self.flat /= 2
        self.work = dist.all_reduce(self.flat, async_op=True)

    def wait(self):
        self.work.wait()
        self.missing = set(self.parameters)
