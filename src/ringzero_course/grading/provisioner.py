"""A kernel in a box: jupyter_client's local provisioner, with bubblewrap around the kernel (``boxes/sandbox``)."""

import contextlib
import signal
import subprocess
from pathlib import Path
from typing import Any

import zmq
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner
from traitlets import Dict

from ringzero_course.boxes import sandbox

NAME = "ringzero-sandbox"  # the entry point
LARGEST_MESSAGE = 20_000_000  # bytes; a larger one ends the connection
MOST_MESSAGES = 20  # that wait to be read; the kernel keeps or drops what is more
# For a message to the kernel to be taken, else zmq.Again. A connection that zmq has ended never takes one.
SEND_SECONDS = 10
END_SECONDS = 1  # far above what a killed box takes


class SandboxProvisioner(LocalProvisioner):
    """Starts the kernel in a box, which it can leave only through the folder of its connection file."""

    limits = Dict(help="The fields of ``ringzero_course.boxes.sandbox.Limits``.").tag(config=True)
    marks = Dict(help="More variables of the kernel's environment.").tag(config=True)

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        kwargs = await super().pre_launch(**kwargs)
        assert self.parent is not None
        connection = Path(self.parent.connection_file)
        sandbox.give(connection.parent)
        sandbox.give(connection)
        command = ["env", "--unset=JPY_PARENT_PID", *kwargs["cmd"]]  # a kernel ends if its parent has another number
        kwargs["cmd"] = sandbox.enclosed(command, [connection.parent], sandbox.Limits(**self.limits))
        kwargs["env"] = sandbox.environment() | self.marks
        return kwargs

    async def send_signal(self, signum: int) -> None:
        """To the kernel in the box if it is an interrupt; bubblewrap itself takes all others, and the box ends."""
        if signum == signal.SIGINT:
            self.interrupt()
        else:
            await super().send_signal(signum)

    async def kill(self, restart: bool = False) -> None:
        """Kill the box and await its end, which takes milliseconds; jupyter_client would look every 0.1 s."""
        await super().kill(restart)
        if self.process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(END_SECONDS)

    def interrupt(self) -> None:
        """Send SIGINT to the kernel."""
        if self.process is not None:
            sandbox.interrupt(self.process.pid)


class BoxedKernelManager(AsyncKernelManager):
    """Starts the usual Python kernel, in a box; its clients take messages of limited size and number."""

    limits: sandbox.Limits
    marks: dict[str, str]

    def client(self, **options):
        client = super().client(**options)
        client.context.setsockopt(zmq.MAXMSGSIZE, LARGEST_MESSAGE)
        client.context.setsockopt(zmq.RCVHWM, MOST_MESSAGES)
        client.context.setsockopt(zmq.SNDTIMEO, 1000 * SEND_SECONDS)
        return client

    @property
    def kernel_spec(self):
        spec = super().kernel_spec
        config = {"limits": vars(self.limits), "marks": self.marks}
        spec.metadata = spec.metadata | {"kernel_provisioner": {"provisioner_name": NAME, "config": config}}
        return spec
