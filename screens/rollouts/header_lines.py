"""The numbers above the stream, as lines of styled text: pure functions of a snapshot and a width."""

from __future__ import annotations

import shlex

from textual.content import Content

from backend.rollouts.run_entry import DIED, FAILED, STOPPED, Headline
from backend.rollouts.run_progress_parts import Phase, ServerState
from screens.rollouts.histograms import outcome_words
from screens.rollouts.snapshot import RunSnapshot
from screens.rollouts.text_fit import joined_within
from screens.widgets import glyphs
from screens.widgets.formatting import age, clock_time, compact, count, joined, score, share, short_time
from screens.widgets.plots import progress_bar
from screens.widgets.scores import score_text
from screens.widgets.text_gate import MUTED, safe_line

_GAP = "   "


def title(shot: RunSnapshot, shown_name: str) -> str:
    """Which run, what it does, for how long."""
    return joined((shown_name, f"{state_word(shot)} {clock_time(shot.elapsed)}"), " · ")


def state_word(shot: RunSnapshot) -> str:
    """What the run does, in a word or two."""
    if shot.entry.state != "running":
        return shot.entry.state
    if shot.phase is Phase.WAITING and shot.servers and all(server.state == "up" for server in shot.servers):
        return "waiting for the model endpoint" if any(each.state != "answering" for each in shot.endpoints) else "servers ready"
    return "running" if shot.phase is Phase.COLLECTING else shot.phase.value


def right_title(shot: RunSnapshot) -> str:
    """What is evaluated."""
    return joined((shot.entry.benchmark or "", shot.entry.model or ""), " · ")


def foot(shot: RunSnapshot) -> str:
    """What the keys do to the run now."""
    if shot.running:
        if shot.stop_action:
            return f"{shot.stop_action} asked for by {shot.stop_by} · x twice: cancel what is in flight"
        return f"x once: admit no more, finish {shot.in_flight_count} in flight · x twice: cancel"
    return "R resumes it" if shot.entry.resumable else ""


def header_lines(shot: RunSnapshot, width: int, *, narrow: bool) -> list[Content]:
    """Progress, rate, score, servers, and what is to be said."""
    starting = shot.phase in (Phase.STARTING, Phase.WAITING)
    lines = [_progress(shot, width), _pace(shot, width, narrow), _score(shot, width, narrow)]
    lines.append(_outcomes(shot, width) if narrow and not starting else _servers(shot.servers, shot))
    lines += _remarks(shot)
    return lines


def _progress(shot: RunSnapshot, width: int) -> Content:
    if shot.replayed < 1:
        return Content(f"reading the events of the run {share(shot.replayed, 1, 0)}")
    if shot.planned is None:
        return Content(shot.phase.value)
    numbers = f"   {count(shot.finished_count)} / {count(shot.planned)}   {share(shot.finished_count, shot.planned)}"
    bar = progress_bar(
        shot.finished_count / shot.planned if shot.planned else 0.0, max(4, width - len(numbers)), glyphs.is_ascii()
    )
    return Content.assemble((bar, "$text-success"), numbers)


def _pace(shot: RunSnapshot, width: int, narrow: bool) -> Content:
    spread = f" {glyphs.current().plus_minus}{clock_time(shot.eta.spread)}" if shot.eta and not narrow else ""
    rate = f"rate {_rate(shot.rate)}" if shot.rate else ""
    left = f"eta {clock_time(shot.eta.seconds)}{spread}" if shot.eta else ""
    limit = f"/{shot.concurrency}" if shot.concurrency and not narrow else ""
    flight = f"in flight {shot.in_flight_count}{limit}" if shot.running else ""
    times = f"p50 {short_time(shot.p50)}   p95 {short_time(shot.p95)}" if shot.p50 is not None else ""
    failures = f"failures {count(shot.failed)}" if narrow or shot.failed else ""
    tokens = f"tok out {compact(shot.output_tokens)}" if narrow and shot.output_tokens else ""
    parts = (rate, left, flight, failures, tokens) if narrow else (rate, left, flight, times, failures)
    return Content(joined_within(parts, width, _GAP))


def _rate(rate: float) -> str:
    return f"{rate:.2f}/s" if rate >= 0.1 else f"{rate * 60:.1f}/min"


def _score(shot: RunSnapshot, width: int, narrow: bool) -> Content:
    if shot.mean is None:
        return Content("no reward yet" if shot.running else "no reward")
    low, high = (shot.interval.low, shot.interval.high) if shot.interval else (None, None)
    mean, _, bounds = score_text(Headline("", shot.mean, shot.reward_scale, low, high)).partition(" ")
    interval = f"CI {bounds}" if narrow else f"95% CI {bounds}"
    scored = f"n={count(shot.rewards)}" if narrow else f"n={count(shot.rewards)} scored"
    zeros = f"({score(shot.mean_with_failures)} with failures as 0)" if shot.failed and not narrow else ""
    tokens = ""
    if not narrow and (shot.input_tokens or shot.output_tokens):
        tokens = f"tokens in {compact(shot.input_tokens)}  out {compact(shot.output_tokens)}"
    line = joined_within((f"reward {mean}", interval if bounds else "", scored, zeros, tokens), width, _GAP)
    bold = f"reward {mean}"
    return Content.assemble((bold, "bold"), line[len(bold) :])


def _outcomes(shot: RunSnapshot, width: int) -> Content:
    begin = "tasks done  "
    return Content(begin + outcome_words(shot, width - len(begin)))


def _servers(servers: tuple[ServerState, ...], shot: RunSnapshot) -> Content:
    if not servers:
        return Content("")
    signs = glyphs.current()
    looks = {"up": (signs.up, "$text-success"), "starting": (signs.starting, "$text-warning")}
    parts: list[Content] = [Content("servers  ")]
    for server in servers:
        sign, style = looks.get(server.state, (signs.stopped, MUTED))
        if not shot.running:
            sign, style = signs.stopped, MUTED
        elif server.state == "ended":
            sign, style = signs.failed, "$text-error"
        parts += [safe_line(server.name), Content(" "), Content.styled(sign, style), Content("   ")]
    return Content("").join(parts)


def _remarks(shot: RunSnapshot) -> list[Content]:
    """What went wrong, what is waited for, how to go on; most important first."""
    signs, entry = glyphs.current(), shot.entry
    lines: list[Content] = []
    if entry.state == DIED:
        lines.append(safe_line(f"{signs.failed} the process of this run ({entry.pid} on {entry.host}) is gone", "$text-error"))
    if error := (shot.error or entry.error):
        lines.append(safe_line(f"{signs.failed} {error}", "$text-error"))
    if entry.state in (DIED, FAILED, STOPPED) and entry.resume_command:
        lines.append(safe_line(f"{signs.arrow} R resumes it: {shlex.join(entry.resume_command)}"))
    if entry.problem:
        lines.append(safe_line(f"{signs.warning} {entry.problem}", "$text-warning"))
    if shot.running:
        lines += _running_remarks(shot)
    lines += [
        safe_line(f"{signs.warning} {remark.text}", "$text-warning")
        for remark in reversed(shot.notices)
        if remark.level == "warning"
    ]
    return lines


def _running_remarks(shot: RunSnapshot) -> list[Content]:
    lines = []
    signs = glyphs.current()
    waiting = [server.name for server in shot.servers if server.state == "starting"]
    if shot.phase in (Phase.STARTING, Phase.WAITING) and waiting:
        number = "1 server" if len(waiting) == 1 else f"{len(waiting)} servers"
        lines.append(safe_line(f"{signs.starting} waiting for {number}: {', '.join(waiting)}"))
    lines += [
        safe_line(f"{signs.warning} {endpoint.url}: {endpoint.state} {endpoint.reason}", "$text-warning")
        for endpoint in shot.endpoints
        if endpoint.state != "answering"
    ]
    if shot.waiting is not None and shot.in_flight_count:
        quiet = shot.waiting.quiet_seconds + shot.now - shot.waiting.at
        lines.append(safe_line(f"{signs.warning} no rollout has finished for {age(quiet)}", "$text-warning"))
    return lines
