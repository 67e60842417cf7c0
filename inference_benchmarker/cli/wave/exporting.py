"""Hands the figures of a command's waves on while it runs, and stays until the verdict was read."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.terminal import say, say_nothing
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.redact import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from inference_benchmarker.cli.wave.export_flags import Exports
    from inference_benchmarker.engine.progress_listener import Live
    from inference_benchmarker.export.destination import Collector
    from inference_benchmarker.export.exporter import Exporter, WaveExport
    from inference_benchmarker.export.page import Page
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.run_dir import RunDir
    from inference_benchmarker.wave.wave import Wave

    Beside = Callable[[RunDir], AbstractContextManager[object]]
    Tell = Callable[[str], None]

NO_PACKAGE = (
    "--export otlp needs OpenTelemetry's packages, which are not installed.",
    "Install them: python -m pip install 'inference-benchmarker[otlp]'",
)
_TIMEOUTS = ("OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT")
_CREDENTIALS = (  # of a session of the user's own
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER",
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_METRICS_CREDENTIAL_PROVIDER",
)
_TIMEOUT_S = 3.0  # of one sending, where the environment says nothing


class Export:
    """The waves of a command on their way out; without an ``exporter`` nobody asked for them.

    ``run``: how they are called together; None: each by its name or directory.
    """

    def __init__(self, exporter: Exporter | None = None, run: str | None = None) -> None:
        self._exporter = exporter
        self._run = run
        self._wave: WaveExport | None = None

    def named(self, run: str) -> Export:
        """The same for waves that are called that together."""
        return Export(self._exporter, run)

    def follow(self, plan: WavePlan, view: Live, endpoint: str | None = None) -> Live:
        """A view of the next wave that hands it on, too. ``endpoint``: its name, where the plan does not give it."""
        if self._exporter is None:
            return view
        from inference_benchmarker.engine.progress_listener import Several

        self._wave = self._exporter.follow(plan, self._run, endpoint)
        return Several(view, self._wave)

    def beside(self, others: Beside = nullcontext) -> Beside:
        """The others beside the wave that was followed last, which is called as its directory where it has no name."""
        return others if self._wave is None else self._wave.beside(others)

    def finish(self, wave: Wave) -> None:
        """The wave that was followed last is over; once more where its verdict was pending."""
        if self._wave is not None:
            self._wave.finish(wave)


@contextmanager
def exporting(exports: Exports, *, quiet: bool | None = False) -> Iterator[Export]:
    """The way out for a command's waves; what cannot be had, a port or a package, is a BenchmarkError before them.

    When the command is done, the page stays until somebody has read the verdict, or as long as was asked; not where
    an error ended it.
    """
    if not exports.asked:
        yield Export()
        return
    from inference_benchmarker.export.exporter import Exporter

    tell, exporter = say_nothing if quiet else say, Exporter()
    with ExitStack() as stack:
        pages = [stack.enter_context(_page(where, exporter)) for where in exports.pages]
        for collector in exports.collectors:
            stack.enter_context(_push(collector, exporter, exports.interval_s, tell))
        for page in pages:
            _announce(page, tell)
        yield Export(exporter)
        for page in pages:
            _wait(page, exports.wait_s, tell)


@contextmanager
def _page(where: Any, exporter: Exporter) -> Iterator[Page]:
    from inference_benchmarker.export.page import Page

    page = Page(where, exporter)
    try:
        yield page
    finally:
        page.close()


def _announce(page: Page, tell: Tell) -> None:
    anybody = "" if page.is_loopback else " Anyone who can reach this host can read them."
    tell(f"Figures for Prometheus: {page.url}.{anybody}")


def _wait(page: Page, wait_s: float, tell: Tell) -> None:
    """Until the page was read with everything on it, the time is over, or Ctrl-C."""
    if page.wait_until_read(0) or not wait_s:
        return
    tell(f"Waiting up to {wait_s:g} s until the verdict is read from {page.url}; press Ctrl-C to stop.")
    try:
        page.wait_until_read(wait_s)
    except KeyboardInterrupt:  # the result is out: this changes no exit code
        return


@contextmanager
def _push(collector: Collector, exporter: Exporter, interval_s: float | None, tell: Tell) -> Iterator[None]:
    """Send to a collector meanwhile; what became of it is reported once, in the end, where it failed."""
    from inference_benchmarker.engine.processes.children import note_addresses
    from inference_benchmarker.export.destination import collector_url

    url = collector_url(collector, os.environ)
    note_addresses(url)
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        from inference_benchmarker.export.push import INTERVAL_S, Push, bounded_session
    except ImportError:
        raise BenchmarkError(*NO_PACKAGE) from None
    timeout_s = None if any(os.environ.get(name) for name in _TIMEOUTS) else _TIMEOUT_S
    session = None if any(os.environ.get(name) for name in _CREDENTIALS) else bounded_session()
    sender = OTLPMetricExporter(endpoint=url, timeout=timeout_s, session=session)
    push = Push(sender, exporter, interval_s or INTERVAL_S)
    tell(f"Figures for OpenTelemetry: {redact(url)}.")
    try:
        yield
    finally:
        push.close()
        if push.failed:
            of = f"{push.sent} of {push.sent + push.failed}"
            tell(f"{redact(url)} accepted {of} exports of metrics; the last failure: {push.reason.text}.")
