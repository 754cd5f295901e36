"""torch's own averager."""


# caught by: test_local_sgd
# mistake: ready_made
# says: raised ImportError: torch.distributed.algorithms.model_averaging is not to be used here: write it yourself
# %% local_sgd
def local_sgd(model, optimizer, loss_of, batches, h):
    from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager

    averager = PeriodicModelAverager(period=h, warmup_steps=0)
    for batch in batches:
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()
        averager.average_parameters(model.parameters())
