"""What only a GPU can show, in one command and eight minutes: ``python -m ringzero.measure.gpu``, or ``make gpu``.

``parts.PARTS`` lists what is run, in order of worth. A part is a generator of rows, dicts of plain numbers and words.
It runs in a process of its own (``child``) within a limit of time, so one that hangs or crashes loses only itself.
``runner`` writes the record after each part. Pages show the newest one, by ``figures.on_a_gpu``.
"""
