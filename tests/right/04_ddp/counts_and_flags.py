"""Buckets count what is missing by flags and divide after the wait; a class is the context of no_sync."""


# %% Bucket
class Bucket:
    def __init__(self, parameters):
        self.parameters = [*parameters]
        self.places = {}
        end = 0
        for p in self.parameters:
            self.places[id(p)] = slice(end, end + p.numel())
            end += p.numel()
        self.flat = torch.empty(end)
        self.here = {id(p): False for p in self.parameters}

    @property
    def missing(self):
        return {p for p in self.parameters if not self.here[id(p)]}

    def put(self, parameter):
        place = self.flat[self.places[id(parameter)]].reshape(parameter.shape)
        place.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
        parameter.grad = place
        self.here[id(parameter)] = True

    def launch(self):
        self.works = [dist.all_reduce(self.flat, op=dist.ReduceOp.SUM, async_op=True)]

    def wait(self):
        while self.works:
            self.works.pop().wait()
        self.flat.div_(dist.get_world_size())
        for key in self.here:
            self.here[key] = False


# %% Accumulating
class Accumulating(Overlapped):
    class Quiet:
        def __init__(self, model):
            self.model = model

        def __enter__(self):
            self.model.depth = getattr(self.model, "depth", 0) + 1

        def __exit__(self, *error):
            self.model.depth -= 1
            return False

    def no_sync(self):
        return self.Quiet(self)

    def gradient_ready(self, parameter):
        if not getattr(self, "depth", 0):
            Overlapped.gradient_ready(self, parameter)


# %% DDP
class DDP(Accumulating):
    def __init__(self, module, cap):
        super().__init__(module, cap)
        self.left = []

    def gradient_ready(self, parameter):
        if getattr(self, "depth", 0):
            return
        self.bucket_of[parameter].put(parameter)
        self.send_ready()

    def send_ready(self):
        for bucket in self.buckets[len(self.left) :]:
            if bucket.missing:
                break
            bucket.launch()
            self.left.append(bucket)

    def finish(self):
        for bucket in self.buckets[len(self.left) :]:
            for p in bucket.parameters:
                if p in bucket.missing:
                    bucket.put(p)
        self.send_ready()
        for bucket in reversed(self.buckets):
            bucket.wait()
        self.left.clear()
