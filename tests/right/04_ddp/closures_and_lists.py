"""Hooks are closures over their bucket; waits go by futures, in the order of the launches."""


# %% Bucket
class Bucket:
    def __init__(self, parameters):
        self.parameters = list(parameters)
        self.flat = torch.cat([torch.zeros(p.numel()) for p in self.parameters])
        self.missing = set(self.parameters)
        self.where = dict(zip(self.parameters, self.flat.split([p.numel() for p in self.parameters])))

    def put(self, parameter):
        place = self.where[parameter].view(parameter.size())
        if parameter.grad is None:
            place.fill_(0.0)
        elif parameter.grad.data_ptr() != place.data_ptr():
            place[...] = parameter.grad
        parameter.grad = place
        self.missing -= {parameter}

    def launch(self):
        self.flat.mul_(1 / dist.get_world_size())
        self.handle = dist.all_reduce(self.flat, async_op=True)

    def wait(self):
        self.handle.wait()
        self.handle = None
        self.missing.update(self.parameters)


# %% Overlapped
class Overlapped(torch.nn.Module):
    def __init__(self, module, cap):
        super().__init__()
        self.module = module
        start_alike(module)
        self.trained = [p for p in module.parameters() if p.requires_grad]
        self.buckets, self.bucket_of = [], {}
        for members in assign([p.numel() * 4 for p in self.trained], cap):
            bucket = Bucket([self.trained[i] for i in members])
            self.buckets.append(bucket)
            for p in bucket.parameters:
                self.bucket_of[p] = bucket

                def hook(parameter):
                    self.gradient_ready(parameter)

                p.register_post_accumulate_grad_hook(hook)

    def forward(self, *args, **options):
        return self.module(*args, **options)

    def gradient_ready(self, parameter):
        bucket = self.bucket_of[parameter]
        bucket.put(parameter)
        if len(bucket.missing) == 0:
            bucket.launch()

    def finish(self):
        [bucket.wait() for bucket in self.buckets]


# %% Accumulating
class Accumulating(Overlapped):
    quiet = 0

    @contextmanager
    def no_sync(self):
        self.quiet += 1
        try:
            yield self
        finally:
            self.quiet -= 1

    def gradient_ready(self, parameter):
        if self.quiet == 0:
            return super().gradient_ready(parameter)
