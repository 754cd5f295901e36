"""Why ranks are stuck or failed, from their records and stacks, in sentences that name ranks and lines."""
