"""The probes of a pod's containers, judged against what the containers would answer."""

from servelab.node import actions, containers, engines, podspec, probing, records, wording
from servelab.node.context import NEVER, Context

# An engine that is still loading has no handler for SIGTERM yet.
TERMINATED_BY_SIGNAL = 143


def step(ctx: Context, now_real_s: float) -> bool:
    """Probe what is due; False if nothing is."""
    for record in ctx.state.records:
        for prober in record.probers:
            if prober.due(now_real_s) and _matters(ctx, record, prober):
                _probe(ctx, record, prober, now_real_s)
                return True
    return False


def next_wake_real_s(ctx: Context) -> float:
    due = (
        prober.next_at_real_s
        for record in ctx.state.records
        for prober in record.probers
        if _matters(ctx, record, prober)
    )
    return min(due, default=NEVER)


def _matters(ctx: Context, record: records.Record, prober: probing.Prober) -> bool:
    """Whether the next result can change or tell anything: passing ones that pass do not."""
    if prober.probe.kind is podspec.ProbeKind.STARTUP:
        return not record.started
    return record.started and not (prober.settled and ctx.healthy(record))


def _probe(ctx: Context, record: records.Record, prober: probing.Prober, now: float) -> None:
    ok, probe = ctx.healthy(record), prober.probe
    flipped = prober.observe(ok, now)
    if not ok:
        why = wording.refused(probe.scheme, ctx.pod_ip, probe.port, probe.path)
        text = wording.probe_failed(probe.kind, why)
        ctx.emit(record, "Unhealthy", text, kind="Warning")
    startup = probe.kind is podspec.ProbeKind.STARTUP
    if (startup and prober.exhausted) or (probe.kind is podspec.ProbeKind.LIVENESS and flipped):
        _give_up(ctx, record, probe.kind, now)
    elif flipped and startup:
        _started(ctx, record, now)
    elif flipped:
        record.ready = prober.passing
        engines.settle(ctx, now)
        ctx.write(now)


def _give_up(ctx: Context, record: records.Record, kind: podspec.ProbeKind, now: float) -> None:
    text = wording.failed_probe_kill(record.spec.name, kind.lower())
    ctx.emit(record, "Killing", text)
    if ctx.is_engine(record):
        ctx.command(actions.Verb.KILL)
        engines.lost(ctx, now)
    containers.crash(ctx, record, TERMINATED_BY_SIGNAL, now)


def _started(ctx: Context, record: records.Record, now: float) -> None:
    record.started = True
    readiness = [p for p in record.probers if p.probe.kind is podspec.ProbeKind.READINESS]
    record.ready = not readiness
    # A passed startup probe has the others probed at once: started and ready share one write.
    for prober in record.probers:
        if prober.probe.kind is not podspec.ProbeKind.STARTUP:
            prober.at_once(now)
    if not any(prober.due(now) for prober in readiness):
        engines.settle(ctx, now)
        ctx.write(now)
