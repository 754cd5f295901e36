"""A training step as data: tasks of each rank in queues, run on a machine's numbers into ``Operation``s. No torch."""
