"""The loss is asked for twice in each step, and once with a gradient that nobody uses."""


# %% local_sgd
def local_sgd(model, optimizer, loss_of, batches, h):
    print(loss_of(model, batches[0]).item())
    for step, batch in enumerate(batches, 1):
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            print(f"step {step}: {loss.item():.3f} -> {loss_of(model, batch).item():.3f}")
        if step % h == 0 or step == len(batches):
            for p in model.parameters():
                if p.requires_grad:
                    dist.all_reduce(p.data)
                    p.data /= dist.get_world_size()
