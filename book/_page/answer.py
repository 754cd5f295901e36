"""Answers what ``engine.js`` asks: in MicroPython, one request at a time, JSON in and JSON out."""

import io
import json
import sys


def answer(request):
    """``{"value": ...}``, or ``{"error": {"type": ..., "message": ..., "trace": ...}}``.

    A request names a function, by ``module`` and ``name``, or has a ``source`` whose variable ``result`` is the value.
    ``given`` are the arguments, or the variables that the source finds.
    """
    request = json.loads(request)
    try:
        if "source" in request:
            names = dict(request["given"])
            names["__name__"] = "page"
            exec(request["source"], names)
            value = names.get("result")
        else:
            __import__(request["module"])
            value = getattr(sys.modules[request["module"]], request["name"])(**request["given"])
        return json.dumps({"value": value})
    except BaseException as error:
        trace = io.StringIO()
        sys.print_exception(error, trace)
        said = {"type": type(error).__name__, "message": str(error), "trace": trace.getvalue()}
        return json.dumps({"error": said})
