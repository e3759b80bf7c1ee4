"""The engine of a pod: its timed steps, serving, and the wait until its probes have passed."""

from modelserve.api import wire
from servelab.node import actions, starting
from servelab.node.context import NEVER, Context


def step(ctx: Context, now_real_s: float) -> bool:
    """Do the next thing that is due; False if nothing is."""
    cold = ctx.state.cold
    if cold is None or cold.phase in (None, wire.Phase.STARTED):
        return False
    if not ctx.engine_running:
        if ctx.engine_pulls:
            _tell(ctx, cold, now_real_s)
        return False
    for at, text in cold.take_lines(now_real_s, ctx.expected_end_real_s()):
        ctx.out.append(actions.Log(cold.start.container, at, text))
    due = _step_ends_real_s(ctx)
    if now_real_s >= due:
        if cold.next_step is not None:
            _next_step(ctx, due)
            ctx.write(due)
        else:
            ctx.state.serve_asked = True
            ctx.command(actions.Verb.SERVE)
        return True
    _tell(ctx, cold, now_real_s)
    return False


def next_wake_real_s(ctx: Context) -> float:
    cold = ctx.state.cold
    if cold is None or cold.phase is None:
        return NEVER
    if ctx.engine_pulls:
        return cold.progress_at_real_s
    if not ctx.engine_running or cold.step is None:
        return NEVER
    next_line = cold.next_line_real_s(ctx.expected_end_real_s())
    return min(_step_ends_real_s(ctx), next_line, cold.progress_at_real_s)


def enter(ctx: Context, phase: wire.Phase, at: float) -> None:
    """Begin a phase of the cold start and note it on the pod."""
    cold = ctx.state.cold
    assert cold is not None
    cold.enter(phase, at)
    ctx.out.append(actions.Annotate(cold.annotation()))


def launch(ctx: Context, at: float) -> None:
    """The engine's container has started: bind its address and begin with the first step."""
    ctx.state.reserved = ctx.state.serving = ctx.state.serve_asked = False
    ctx.command(actions.Verb.RESERVE)
    _next_step(ctx, at)


def relaunch(ctx: Context, now: float) -> None:
    """After a restart of ours: the container ran on, its engine needs a process and an address.

    A step that was running goes on from when it began; an engine that had loaded serves at once.
    """
    cold = ctx.state.cold
    assert cold is not None
    ctx.command(actions.Verb.RESERVE)
    # The log was lost with the process; what the engine said while it started is known.
    for at, text in cold.past_lines():
        ctx.out.append(actions.Log(cold.start.container, at, text))
    if cold.step is not None:
        began_s = cold.since_real_s * ctx.host.scale
        ctx.host.transfers.start(ctx.load_key, cold.step.work, began_s)
        cold.schedule_lines()
    elif cold.phase in (wire.Phase.PROBE, wire.Phase.STARTED):
        ctx.state.serve_asked = True
        ctx.command(actions.Verb.SERVE)
    else:
        # No stamps tell how far it was: it starts from the beginning.
        _next_step(ctx, now)


def forget(ctx: Context) -> None:
    """The engine starts anew: its cold start is told from the beginning."""
    assert ctx.engine is not None
    ctx.state.cold = starting.ColdStart(ctx.engine, ctx.host.scale)


def moved(ctx: Context, now_real_s: float) -> None:
    """The end of a pull or a load has moved: what is told of it is renewed soon."""
    if ctx.state.cold is not None:
        ctx.state.cold.hurry(now_real_s)


def lost(ctx: Context, at: float) -> None:
    """The engine's process is gone."""
    ctx.state.serving = ctx.state.reserved = False
    ctx.host.transfers.stop(ctx.load_key, at * ctx.host.scale)


def served(ctx: Context, at: float) -> None:
    """The engine answers: now its probes decide."""
    ctx.state.serving = True
    cold = ctx.state.cold
    if cold is not None and cold.phase in starting.TIMED:
        ctx.host.transfers.stop(ctx.load_key, at * ctx.host.scale)
        enter(ctx, wire.Phase.PROBE, at)
        settle(ctx, at)
        ctx.write(at)


def settle(ctx: Context, at: float) -> None:
    """The cold start is over once the container is ready."""
    cold, record = ctx.state.cold, ctx.engine_record()
    if cold is not None and cold.phase is wire.Phase.PROBE and record is not None and record.ready:
        enter(ctx, wire.Phase.STARTED, at)


def _next_step(ctx: Context, at: float) -> None:
    cold = ctx.state.cold
    assert cold is not None
    following = cold.next_step
    assert following is not None
    ctx.host.transfers.start(ctx.load_key, following.work, at * ctx.host.scale)
    enter(ctx, following.phase, at)


def _tell(ctx: Context, cold: starting.ColdStart, now: float) -> None:
    """Progress, when it is time; and when the phase should end, if that is not what was told."""
    if now < cold.progress_at_real_s:
        return
    cold.progress_at_real_s = now + cold.progress_every_real_s
    news = cold.expect(ctx.expected_end_real_s())
    if news:
        ctx.out.append(actions.Annotate(cold.annotation()))
    if news or not ctx.engine_pulls or ctx.progress(now) is not None:
        ctx.write(now)


def _step_ends_real_s(ctx: Context) -> float:
    cold = ctx.state.cold
    if cold is None or cold.step is None or ctx.state.serve_asked:
        return NEVER
    if cold.next_step is None and not ctx.state.reserved:
        return NEVER
    return ctx.expected_end_real_s()
