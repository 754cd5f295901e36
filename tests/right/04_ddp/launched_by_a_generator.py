"""One DDP whose buckets leave in the order of an iterator; prints and a log of what it did."""


# %% DDP
class DDP(Accumulating):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.log = []
        self.start()

    def start(self):
        self.to_come = iter(self.buckets)
        self.next = next(self.to_come, None)

    def advance(self):
        while self.next is not None and not self.next.missing:
            self.next.launch()
            self.log.append(len(self.next.parameters))
            self.next = next(self.to_come, None)

    def gradient_ready(self, parameter):
        if not self.syncing:
            return
        self.bucket_of[parameter].put(parameter)
        self.advance()

    def finish(self):
        for bucket in self.buckets:
            for parameter in bucket.parameters:
                if parameter in bucket.missing:
                    bucket.put(parameter)
                    self.advance()
        super().finish()
        print(f"{len(self.log)} launches of rank {dist.get_rank()}")
        self.start()
