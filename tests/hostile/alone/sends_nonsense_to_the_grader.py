"""Sends messages that break the kernel's protocol, signed with its own key: no text, wrong types, depth."""

# verdict: tampering
# %% double
# points: 2
import os

kernel = get_ipython().kernel


def tell(kind, content):
    kernel.session.send(kernel.iopub_socket, kind, content, parent=kernel.get_parent(), ident=b"x")


tell("stream", {})
tell("stream", {"name": 7, "text": {"a": 1}})
tell("display_data", {"data": 7, "metadata": "x"})
tell("execute_result", {"data": {"text/plain": {"a": [1, 2]}}, "metadata": {}, "execution_count": "many"})
tell("error", {"ename": 1, "evalue": None, "traceback": {"x": 1}})
tell("update_display_data", {"data": {}, "metadata": {}, "transient": 3})
tell("comm_open", {"data": [], "comm_id": {}, "target_name": "jupyter.widget"})
tell("comm_msg", {"data": {"method": "update", "state": 4}, "comm_id": "x"})
tell("clear_output", {"wait": []})
tell("status", {"execution_state": 4})
tell("\x1b]0;evil\x07", {})
mine = kernel.get_parent()["header"]["msg_id"]
widget = {"_model_module": "@jupyter-widgets/output", "_model_name": "OutputModel", "outputs": []}
tell("comm_open", {"data": {"state": widget}, "comm_id": "w", "target_name": "jupyter.widget"})
for place in (mine, "", ""):  # take all outputs, and give them back once more than they were taken
    tell("comm_msg", {"data": {"method": "update", "state": {"msg_id": place}}, "comm_id": "w"})
deep = "x"
for _ in range(400):
    deep = [deep]
tell("display_data", {"data": {"application/json": deep, "text/plain": "x"}, "metadata": {}})
send, answers = kernel.session.send, iter([{}])


def answer(stream, kind, content=None, *others, **more):
    """What it says of the end of this cell is no answer."""
    return send(stream, kind, next(answers, content) if kind == "execute_reply" else content, *others, **more)


kernel.session.send = answer


def double(x):
    return 2 * x


# %% triple
# points: 3
import json
import time


def nested():
    """A message whose content is lists in lists, deeper than a reader goes, and one with another's signature."""
    header = {"msg_id": "1", "msg_type": "stream", "username": "", "session": "", "date": "2026-01-01", "version": "5.3"}
    parent = json.dumps(kernel.get_parent()["header"], default=str).encode()
    parts = [json.dumps(header).encode(), parent, b"{}", b"[" * 200_000]
    half = [*parts[:3], rb'{"name": "stdout", "text": "\ud800"}']  # of a character
    for signature, sent in ((kernel.session.sign(parts), parts), (b"0" * 64, parts), (kernel.session.sign(half), half)):
        kernel.iopub_socket.send_multipart([b"x", b"<IDS|MSG>", signature, *sent])
    time.sleep(1)


nested()


def triple(x):
    return 3 * x
