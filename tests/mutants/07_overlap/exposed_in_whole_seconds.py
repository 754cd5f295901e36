"""Right for whole seconds only."""
# caught by: test_exposed
# mistake: rounded_wrongly
# says: the exposed time is
# %% exposed
def exposed(operations):
    def seconds(stream):
        return {s for op in operations if op.stream == stream for s in range(int(op.start), int(op.end))}

    return len(seconds("communication") - seconds("compute"))
