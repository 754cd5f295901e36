"""Counts ticks of a clock, 8,192 in a second."""
# caught by: test_exposed
# mistake: rounded_wrongly
# %% exposed
def exposed(operations):
    """Seconds in which a rank communicates and does not compute."""
    busy, sending = set(), set()
    for op in operations:
        ticks = busy if op.stream == "compute" else sending
        ticks.update(range(round(8192 * op.start), round(8192 * op.end)))
    return len(sending - busy) / 8192
