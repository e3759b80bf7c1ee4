"""Containers: pull the image, create, start, and start again with back-off when they end."""

import math

from servelab.node import actions, engines, records, wording
from servelab.node.context import NEVER, Context, Stage

BACK_OFF_REAL_S = 10.0
BACK_OFF_CAP_REAL_S = 300.0
BACK_OFF_RESET_REAL_S = 600.0
# A kubelet comes back to a pod whose sync failed after 10 to 15 s, and to any pod each minute: only
# then does it start again what has waited long enough, or show that it waits.
RESYNC_REAL_S = 12.0
SYNC_REAL_S = 60.0


def step(ctx: Context, now_real_s: float) -> bool:
    """Do the next thing that is due; False if nothing is."""
    for record in ctx.state.records:
        due = _due_real_s(ctx, record)
        if now_real_s < due:
            continue
        if record.pull_key:
            _pulled(ctx, record, due)
        elif record.create_at_s is not None:
            _run(ctx, record, due)
        elif record.tell_at_s is not None:
            record.back_off()
            ctx.write(due)
        else:
            _restart(ctx, record, due)
        return True
    return False


def next_wake_real_s(ctx: Context) -> float:
    return min((_due_real_s(ctx, record) for record in ctx.state.records), default=NEVER)


def start_next(ctx: Context, at: float) -> None:
    """Begin with the container whose turn it is, if any is left."""
    if ctx.state.cursor < len(ctx.state.records):
        _begin(ctx, ctx.state.records[ctx.state.cursor], at)


def crash(ctx: Context, record: records.Record, exit_code: int, at: float) -> None:
    """A running container ended by itself: by the pod's policy it starts again, after a while."""
    ran_real_s = at - (record.started_at_s or at)
    record.end(exit_code, at)
    policy = ctx.pod.restart_policy
    if policy == "Never" or (policy == "OnFailure" and exit_code == 0):
        if not ctx.running:
            ctx.state.stage, ctx.state.sandbox = Stage.OVER, "gone"
        ctx.write(at)
        return
    ctx.write(at)
    record.crashes = 1 if ran_real_s >= BACK_OFF_RESET_REAL_S else record.crashes + 1
    record.restart_at_s = at
    if record.crashes > 1:
        _back_off(ctx, record, at)


def resume_restart(ctx: Context, record: records.Record, now: float) -> None:
    """After a restart of ours: what had ended starts again when its back-off is over."""
    ended = record.ended or record.last
    policy, code = ctx.pod.restart_policy, ended.exit_code if ended else 0
    if policy == "Never" or (policy == "OnFailure" and code == 0):
        return
    since = ended.finished_at_s if ended else now
    record.restart_at_s = since + (_delay_real_s(record.crashes)[0] if record.crashes else 0.0)


def resume_start(ctx: Context, begun_at: float) -> None:
    """After a restart of ours: the next container goes on as begun then, events already told."""
    record = ctx.state.records[ctx.state.cursor]
    if record.waiting == "ErrImageNeverPull":
        return
    if ctx.host.images.present(record.spec.image) and record.spec.pull_policy != "Always":
        record.create_at_s = begun_at + ctx.host.create_s / ctx.host.scale
    else:
        pull(ctx, record, begun_at)


def _delay_real_s(crashes: int) -> tuple[float, float]:
    """Seconds until it starts again, and the back-off that the kubelet names."""
    wanted = min(BACK_OFF_CAP_REAL_S, BACK_OFF_REAL_S * 2.0 ** max(0, crashes - 2))
    return min(BACK_OFF_CAP_REAL_S, math.ceil(wanted / RESYNC_REAL_S) * RESYNC_REAL_S), wanted


def _back_off(ctx: Context, record: records.Record, at: float) -> None:
    delay, wanted = _delay_real_s(record.crashes)
    record.restart_at_s = at + delay
    record.tell_at_s = at + min(delay, SYNC_REAL_S)
    where = (record.spec.name, ctx.pod.namespace, ctx.pod.name, ctx.pod.uid)
    record.waiting_message = wording.back_off_message(wanted, *where)
    ctx.emit(record, "BackOff", wording.back_off_event(*where), kind="Warning")


def _due_real_s(ctx: Context, record: records.Record) -> float:
    if record.pull_key:
        return ctx.host.images.state(record.pull_key).ends_s / ctx.host.scale
    if record.create_at_s is not None:
        return record.create_at_s
    if record.tell_at_s is not None:
        return record.tell_at_s
    return NEVER if record.restart_at_s is None else record.restart_at_s


def _begin(ctx: Context, record: records.Record, at: float) -> None:
    spec = record.spec
    if ctx.host.images.present(spec.image) and spec.pull_policy != "Always":
        ctx.emit(record, "Pulled", wording.present(spec.image))
        record.create_at_s = at + ctx.host.create_s / ctx.host.scale
    elif spec.pull_policy == "Never":
        record.waiting = "ErrImageNeverPull"
        record.waiting_message = wording.never_pulled(spec.image)
        ctx.emit(record, "ErrImageNeverPull", record.waiting_message, kind="Warning")
        ctx.emit(record, "Failed", "Error: ErrImageNeverPull", kind="Warning")
        ctx.write(at)
    else:
        ctx.emit(record, "Pulling", wording.pulling(spec.image))
        pull(ctx, record, at)
        if ctx.state.cold is not None:
            ctx.write(at)


def pull(ctx: Context, record: records.Record, at: float) -> None:
    """Ask the node for the container's image; ``at`` may lie in the past."""
    record.pull_key = f"{ctx.pod.uid}/{record.spec.name}"
    work = ctx.works[record.spec.name]
    ctx.host.images.pull(record.pull_key, record.spec.image, work, at * ctx.host.scale)


def _pulled(ctx: Context, record: records.Record, at: float) -> None:
    news = not ctx.host.images.present(record.spec.image)
    done = ctx.host.images.finish(record.pull_key)
    record.pull_key = ""
    took, waited = done.ends_s - done.begun_s, done.ends_s - done.asked_s
    text = wording.pulled(record.spec.image, took, waited, done.size_bytes)
    ctx.emit(record, "Pulled", text)
    if news:
        ctx.out.append(actions.ImagesChanged())
    _run(ctx, record, at)


def _run(ctx: Context, record: records.Record, at: float) -> None:
    if record.restarts:
        ctx.out.append(actions.NewLog(record.spec.name))
    ctx.emit(record, "Created", "Container created")
    ctx.emit(record, "Started", "Container started")
    record.start(ctx.pod.uid, at)
    if ctx.is_engine(record):
        engines.launch(ctx, at)
    if record.spec.init and not record.spec.sidecar:
        # What an init container does is not emulated: it is done at once.
        record.end(0, at)
        record.ready = True
    ctx.write(at)
    state = ctx.state
    if state.cursor < len(state.records) and record is state.records[state.cursor]:
        state.cursor += 1
        start_next(ctx, at)


def _restart(ctx: Context, record: records.Record, at: float) -> None:
    record.again()
    if ctx.is_engine(record):
        engines.forget(ctx)
    _begin(ctx, record, at)
