"""Space-time diagram of a schedule, drawn by ``ringzero_course.in_page.space_time``, which pages run too."""

from ringzero.collectives.schedule import Schedule
from ringzero.drawing.figure import Figure, picture
from ringzero_course.in_page.space_time import space_time


def spacetime(schedule: Schedule, *, upto: int | None = None, caption: str | None = None) -> Figure:
    """Draw ``schedule``. With ``upto=k`` only the first k rounds have happened: the rest is drawn faintly."""
    width, height, parts = space_time(schedule.world_size, list(schedule.rounds), upto)
    title = f"{schedule.collective.replace('_', '-')}, {schedule.name}, {schedule.world_size} ranks"
    return picture(width, height, title, _description(schedule), parts, caption, text=11)


def _description(schedule):
    transfers = sum(len(round) for round in schedule.rounds)
    added = sum(int(round.reduce.sum()) for round in schedule.rounds)
    messages = schedule.messages_sent()
    most = int(messages.max()) if len(messages) else 0
    return (
        f"{len(schedule.rounds)} rounds, {transfers} transfers of {schedule.chunks} "
        f"chunk{'s' * (schedule.chunks != 1)}: {added} added on arrival, {transfers - added} copied. "
        f"The busiest rank sends {most} messages"
    )
