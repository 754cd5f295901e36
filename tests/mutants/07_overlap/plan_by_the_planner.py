"""Asks the planner."""
# caught by: test_plan
# mistake: ready_made
# says: write it yourself
# %% plan
def plan(nodes):
    best = planner.rank(MODELS["llama3-70b"], Cluster("H100", nodes=nodes), 32 * nodes).fitting[0].plan
    names = ("data", "tensor", "pipeline", "stage", "recomputation")
    return {name: getattr(best, name) for name in names}
