"""Prints for ever; and shows what nobody sees and what would fill the grader's memory: metadata, errors, widgets."""

# verdict: limit
# says: OUTPUT LIMIT in cell [2]
# says: LIMIT in cell [4]
# %% double
# points: 0
kernel, much = get_ipython().kernel, "x" * 15_000_000
for number in range(4):
    for kind, content in {
        "display_data": {"data": {}, "metadata": {"much": much}},
        "error": {"ename": "E", "evalue": "", "traceback": [much]},
        "comm_open": {"data": {"state": {"much": much}}, "comm_id": f"{number}", "target_name": "jupyter.widget"},
    }.items():
        kernel.session.send(kernel.iopub_socket, kind, content, parent=kernel.get_parent(), ident=b"x")
__import__("time").sleep(1000)


def double(x):
    return 2 * x


# %% triple
while True:
    print("x" * 1000)
