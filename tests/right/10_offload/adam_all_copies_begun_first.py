"""HostAdam begins all copies, then waits; masters' gradients stay until the next step. The overlapped one stands alone."""


# %% HostAdam
class HostAdam:
    def __init__(self, parameters, link, **adamw):
        self.parameters, self.link = list(parameters), link
        copies = [link.start_to_host(p.detach()) for p in self.parameters]
        self.masters = [copy.wait().to(torch.float32).requires_grad_() for copy in copies]
        self.optimizer = torch.optim.AdamW(self.masters, **adamw)

    def step(self):
        copies = [None if p.grad is None else self.link.start_to_host(p.grad) for p in self.parameters]
        for p, master, copy in zip(self.parameters, self.masters, copies):
            p.grad = None
            master.grad = None if copy is None else copy.wait().float()
        self.optimizer.step()
        back = [
            (p, self.link.start_to_device(master.detach().to(p.dtype)))
            for p, master in zip(self.parameters, self.masters)
            if master.grad is not None
        ]
        with torch.no_grad():
            for p, copy in reversed(back):
                p.data.copy_(copy.wait())


# %% OverlappedHostAdam
class OverlappedHostAdam:
    def __init__(self, parameters, link, **adamw):
        self.parameters, self.link = list(parameters), link
        self.masters = [link.to_host(p).float().requires_grad_() for p in self.parameters]
        self.optimizers = [torch.optim.AdamW([master], **adamw) for master in self.masters]
        self.order, self.copies = [], [[] for _ in self.parameters]
        for i, p in enumerate(self.parameters):
            p.register_post_accumulate_grad_hook(lambda p, i=i: self.leave(i, p))

    def leave(self, i, p):
        if i not in self.order:
            self.order.append(i)
        self.copies[i].append(self.link.start_to_host(p.grad.detach()))
        p.grad = None

    @torch.no_grad()
    def step(self):
        back = {}
        for i in self.order:
            for copy in self.copies[i]:
                gradient = copy.wait().float()
                self.masters[i].grad = gradient if self.masters[i].grad is None else self.masters[i].grad + gradient
            self.optimizers[i].step()
            back[i] = self.link.start_to_device(self.masters[i].to(self.parameters[i].dtype))
            self.masters[i].grad = None
        self.order, self.copies = [], [[] for _ in self.parameters]
        for i in sorted(back):
            self.parameters[i].copy_(back[i].wait())
