"""All runs of a folder on one page, live and finished: each opens as its own page, and some can be compared."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from html import escape
from pathlib import Path
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from fedcoast.methods.text import printable
from fedcoast.reports import markup
from fedcoast.reports.access_control import AccessControl
from fedcoast.reports.following import RunFollower
from fedcoast.reports.live import Live
from fedcoast.reports.markup import Cell
from fedcoast.reports.page import live_page, plotly_js, style
from fedcoast.reports.phrasing import several
from fedcoast.reports.report_data import ReportData, title_of
from fedcoast.storage.replay import round_numbers
from fedcoast.storage.run_folder import is_run

MOST_OPEN = 8  # runs that are followed at once; the one opened first is closed
LIVE = 60.0  # seconds since its last round, within which a run counts as live
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"


def find_runs(folder: Path) -> dict[str, Path]:
    """The recorded runs that lie in a folder, by name; a run itself holds none."""
    if is_run(folder) or not folder.is_dir():
        return {}
    return {place.name: place for place in sorted(folder.iterdir()) if place.is_dir() and is_run(place)}


class OpenRuns:
    """The runs that browsers show, each followed by one task."""

    def __init__(self, folder: Path, follow: Callable[[Path], RunFollower]) -> None:
        self.folder = folder
        self._follow = follow
        self._open: dict[str, tuple[Live, asyncio.Task[None]]] = {}

    async def get(self, name: str) -> Live | None:
        """The state of a run, which is followed from now on; None where there is no such run."""
        if name not in self._open:
            place = find_runs(self.folder).get(name)
            if place is None:
                return None
            live = await asyncio.to_thread(lambda: Live(self._follow(place)))
            if name in self._open:  # another request opened it meanwhile
                return self._open[name][0]
            self._open[name] = live, asyncio.create_task(live.run())
            for oldest in list(self._open)[:-MOST_OPEN]:
                await _stop(self._open.pop(oldest)[1])
        return self._open[name][0]

    async def close(self) -> None:
        for _, task in self._open.values():
            await _stop(task)

    def report(self, name: str) -> ReportData | None:
        """Everything about a run, read now."""
        place = find_runs(self.folder).get(name)
        if place is None:
            return None
        follower = self._follow(place)
        follower.catch_up()
        return follower.report()


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def application(runs: OpenRuns, token: str | None = None, closing: Callable[[], bool] = lambda: False) -> Starlette:
    """The list of runs, and the page of each."""

    async def index(request: Request) -> Response:
        return _html(await asyncio.to_thread(list_page, runs.folder))

    async def compare(request: Request) -> Response:
        names = request.query_params.getlist("run")[:MOST_OPEN]
        found = {name: await asyncio.to_thread(runs.report, name) for name in names}
        return _html(compare_page({name: report for name, report in found.items() if report is not None}))

    async def one(request: Request) -> Response:
        live = await runs.get(request.path_params["name"])
        what = request.path_params.get("what", "")
        if live is None or what not in ("", "view", "events", "plotly.js"):
            return PlainTextResponse("This run does not exist; go back to the list.\n", status_code=404)
        if what == "view":
            return Response(live.body, media_type="application/json")
        if what == "events":
            return StreamingResponse(live.news(closing), media_type="text/event-stream")
        if what == "plotly.js":
            return Response(plotly_js(), media_type="text/javascript")
        text, policy = live_page(live.view, back="../../")
        return HTMLResponse(text, headers={"Content-Security-Policy": policy})

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await runs.close()

    paths = {"/": index, "/compare": compare, "/run/{name}/": one, "/run/{name}/{what}": one}
    app = Starlette(routes=[Route(path, answer, methods=["GET"]) for path, answer in paths.items()], lifespan=lifespan)
    app.add_middleware(AccessControl, token=token)
    return app


def list_page(folder: Path) -> str:
    """Every run with its rounds and whether it still grows, the latest first; a form chooses some to compare."""
    ages = {name: _age(place) for name, place in find_runs(folder).items()}
    rows = []
    for name, age in sorted(ages.items(), key=lambda item: math.inf if item[1] is None else item[1]):
        place, shown = folder / name, escape(printable(name))
        state = "live" if age is not None and age < LIVE else "finished"
        title = escape(printable(title_of(place)))
        note = "" if title == shown else f"<small><bdi>{shown}</bdi></small>"
        link = f'<a href="run/{quote(name, safe="")}/"><bdi>{title}</bdi></a>{note}'
        box = f'<input type="checkbox" name="run" value="{escape(name)}" aria-label="compare {shown}"> '
        cells = [Cell(f"{len(round_numbers(place)):,}"), Cell(_ago(age)), Cell(state)]
        rows.append([Cell(box + link, "", "client"), *cells])
    if not rows:
        body = markup.paragraph("No recorded run is here yet. Make one: fedcoast demo")
    else:
        heads = ["run", "rounds", "last round", "state"]
        table = markup.table("runs", "All recorded runs, the latest first; tick those to compare", heads, rows)
        body = f'<form action="compare">{table}<p class="tools"><button>Compare the chosen runs</button></p></form>'
    return _page("Runs", markup.paragraph(f"In <bdi>{escape(printable(folder.resolve()))}</bdi>", "note") + body)


def _ago(age: float | None) -> str:
    """
    >>> _ago(None), _ago(20), _ago(150), _ago(7300), _ago(200000)
    ('–', 'just now', '2 minutes ago', '2 hours ago', '2 days ago')
    """
    if age is None:
        return "–"
    for seconds, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if age >= seconds:
            return f"{several(int(age // seconds), unit)} ago"
    return "just now"


def compare_page(reports: dict[str, ReportData]) -> str:
    """Rank and verdict of each client in each run. Scores of different runs are not comparable, ranks are."""
    if not reports:
        return _page("Compare runs", markup.paragraph('Choose runs in <a href="./">the list</a>.'))
    cells = {name: {s.client: s for s in report.summaries} for name, report in reports.items()}
    clients = list(dict.fromkeys(s.client for report in reports.values() for s in report.summaries))
    rows = []
    for client in clients:
        found = [cells[name].get(client) for name in reports]
        first = next(summary for summary in found if summary is not None)
        words = ["–" if s is None else f"{s.rank} ({s.verdict})" if s.verdict else str(s.rank) for s in found]
        rows.append([Cell(markup.named(first), "", "client"), *(Cell(escape(word), "", "words") for word in words)])
    heads = ["client", *(printable(name) for name in reports)]
    table = markup.table("compared", "Rank and verdict of each client in each run", heads, rows)
    note = markup.paragraph("Scores of different runs cannot be compared; ranks and verdicts can.", "note")
    return _page("Compare runs", f'{table}{note}<p><a href="./">All runs</a></p>')


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><title>{escape(title)}</title><style>{style()}</style></head>'
        f'<body><header><p class="kind">fedcoast</p><h1>{escape(title)}</h1></header><main>{body}</main></body></html>'
    )


def _html(text: str) -> Response:
    return HTMLResponse(text, headers={"Content-Security-Policy": _POLICY})


def _age(run: Path) -> float | None:
    """Seconds since the last round was recorded."""
    try:
        return max(0.0, time.time() - (run / "rounds").stat().st_mtime)
    except OSError:
        return None
