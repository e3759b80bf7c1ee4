"""The core against a second one that looks at every sequence and every block in every step."""

import dataclasses
import math
import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelserve.api.spec import BatchingMode
from servelab.engine.core.config import CoreConfig, Policy
from servelab.engine.core.sequences import CoreRequest, Finish, FinishReason, FirstToken, Output
from servelab.engine.core.stepping import EngineCore

JITTER_SEED = 3


@dataclass(frozen=True, slots=True)
class Law:
    """Every argument counts, so that a wrong one shows."""

    def step_s(
        self,
        decode_sequences: int,
        context_tokens: int,
        prefill_tokens: int = 0,
        prefill_context_tokens: int = 0,
        prefill_sequences: int = 1,
    ) -> float:
        return (
            0.01
            + 0.001 * decode_sequences
            + 1e-6 * context_tokens
            + 1e-4 * prefill_tokens
            + 1e-7 * prefill_context_tokens
            + 1e-5 * prefill_sequences
        )


@dataclass(frozen=True, slots=True)
class SumLaw(Law):
    """The same law, but for a least, which tells that decoding is such a sum."""

    least_s: float = 0.0

    def step_s(
        self,
        decode_sequences: int,
        context_tokens: int,
        prefill_tokens: int = 0,
        prefill_context_tokens: int = 0,
        prefill_sequences: int = 1,
    ) -> float:
        seconds = Law.step_s(
            *(self, decode_sequences, context_tokens, prefill_tokens),
            *(prefill_context_tokens, prefill_sequences),
        )
        return seconds if prefill_tokens else max(self.least_s, seconds)

    def decode_terms(self, decode_sequences: int) -> tuple[float, float, float]:
        return 0.01 + 0.001 * decode_sequences + 1e-5, 1e-6, self.least_s


@dataclass(frozen=True, slots=True)
class UntoldLaw:
    """A law of which only the seconds are known."""

    inner: SumLaw

    def step_s(self, *numbers: int) -> float:
        return self.inner.step_s(*numbers)


@dataclass(frozen=True, slots=True)
class Text:
    """Token ids: some equal ones, then the text's own."""

    shared: int
    own: int

    def ids(self, first: int, count: int) -> list[int]:
        return [0 if at < self.shared else self.own for at in range(first, first + count)]


@dataclass(slots=True, eq=False)
class Block:
    """A physical block; the text up to its end if it is full and known to the cache."""

    text: tuple[int, ...] | None = None
    users: int = 0


@dataclass(slots=True, eq=False)
class Member:
    """A sequence with its table of blocks."""

    request: CoreRequest
    arrived_s: float
    limit: int
    known: int
    computed: int = 0
    table: list[Block] = field(default_factory=list)
    preemptions: int = 0
    cached: int = 0
    scheduled_s: float | None = None
    first_s: float | None = None
    last_s: float | None = None

    @property
    def output(self) -> int:
        return self.known - self.request.prompt_tokens

    def text(self, tokens: int) -> tuple[int, ...]:
        source = self.request.tokens
        if source is None:
            return (hash(self.request.id), *range(1, tokens))
        return tuple(source.ids(0, tokens))

    def finish(self, reason: FinishReason, at_s: float) -> Finish:
        return Finish(
            *(self.request.id, reason, at_s, self.arrived_s, self.scheduled_s),
            *(self.first_s, self.last_s, self.request.prompt_tokens, self.output),
            *(self.preemptions, self.cached),
        )


class PlainCore:
    """vLLM's rules without any thrift."""

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        self.rng = random.Random(JITTER_SEED)
        self.waiting: list[Member] = []
        self.running: list[Member] = []
        self.free = [Block() for _ in range(config.kv_blocks)]
        self.cached: list[Block] = []  # in the order in which they came
        self.prefix_tokens = (0, 0)
        self.clock_s = -math.inf
        self.end_s: float | None = None
        self.scheduled: list[tuple[Member, int]] = []
        self.preempted: list[Member] = []
        self.gone: list[Member] = []
        self.prefill = 0
        self.most_static = 0
        self.outputs: list[Output] = []

    def submit(self, request: CoreRequest, now_s: float) -> None:
        self.run(now_s, start_now=False)
        limit = min(request.max_tokens, self.config.max_model_tokens - request.prompt_tokens)
        self.waiting.append(Member(request, now_s, limit, request.prompt_tokens))
        if self.end_s is None:
            self.clock_s = max(self.clock_s, now_s)

    def cancel(self, request_id: str, now_s: float) -> None:
        self.run(now_s, start_now=False)
        for queue in (self.waiting, self.running):
            for member in queue:
                if member.request.id == request_id:
                    queue.remove(member)
                    self.gone.append(member)
                    finish = member.finish(FinishReason.ABORT, now_s)
                    self.outputs.append(Output((), (), finished=(finish,)))
                    if self.end_s is None:
                        self.give_back(self.gone.pop())
                    return

    def run(self, now_s: float, *, start_now: bool = True) -> None:
        while True:
            if self.end_s is not None:
                if self.end_s > now_s:
                    return
                self.end(self.end_s)
            if not self.waiting and not self.running:
                return
            start_s = self.start_s()
            if start_s > now_s or (start_s == now_s and not start_now):
                return
            self.start(start_s)

    def start_s(self) -> float:
        config = self.config
        if self.running:
            return self.clock_s
        delay_s = config.front_s
        if config.batching == BatchingMode.DYNAMIC and len(self.waiting) < config.slots:
            delay_s = max(delay_s, config.gather_s)
        return max(self.clock_s, self.waiting[0].arrived_s + delay_s)

    def start(self, start_s: float) -> None:
        config = self.config
        self.most_static = self.most_static if self.running else 0
        self.scheduled, self.preempted = [], []
        budget = most = config.max_batched_tokens
        if config.long_prefill_tokens and len(self.running) + len(self.waiting) > 1:
            most = config.long_prefill_tokens
        at = 0
        joinable = not self.running or config.batching in (
            BatchingMode.CONTINUOUS,
            BatchingMode.NONE,
        )
        while at < len(self.running) and budget > 0:
            member = self.running[at]
            tokens = min(member.known - member.computed, most, budget)
            if not self.make_room(member, member.computed + tokens):
                break
            self.scheduled.append((member, tokens))
            budget -= tokens
            at += 1
        while joinable and not self.preempted and self.waiting and budget > 0:
            tokens = self.admit(start_s, min(most, budget))
            if not tokens:
                break
            budget -= tokens
        self.end_s = start_s + self.duration_s()

    def duration_s(self) -> float:
        decodes = [
            member
            for member, tokens in self.scheduled
            if tokens == 1 and member.known - member.computed == 1 and member.output
        ]
        prompts = [pair for pair in self.scheduled if pair[0] not in decodes]
        count = len(decodes)
        if self.config.batching == BatchingMode.STATIC:
            self.most_static = max(self.most_static, len(self.running))
            count = max(count, self.most_static - len(prompts))
        self.prefill = sum(tokens for _, tokens in prompts)
        step_s = Law().step_s(
            *(count, sum(member.known for member in decodes), self.prefill),
            *(sum(member.computed for member, _ in prompts), max(1, len(prompts))),
        )
        jitter = self.config.jitter
        if jitter:
            step_s *= math.exp(self.rng.gauss(0.0, jitter) - jitter * jitter / 2)
        return step_s

    def make_room(self, member: Member, end: int) -> bool:
        while not self.take(member, end):
            victim = self.running.pop()
            self.give_back(victim)
            victim.computed = 0
            victim.preemptions += 1
            self.waiting.insert(0, victim)
            self.preempted.append(victim)
            if victim is member:
                return False
        return True

    def admit(self, now_s: float, most: int) -> int:
        member, config = self.waiting[0], self.config
        if len(self.running) >= config.slots or member.arrived_s + config.front_s > now_s:
            return 0
        found = self.find(member)
        new = sum(1 for block in found if not block.users)
        if config.blocks_for(member.known) - len(found) + new > len(self.free):
            return 0
        for block in found:
            if not block.users:
                self.free.remove(block)
            block.users += 1
        member.table = found
        member.computed = len(found) * config.block_size
        if config.prefix_caching and not member.preemptions:
            member.cached = member.computed
            queries, hits = self.prefix_tokens
            self.prefix_tokens = queries + member.known, hits + member.computed
        tokens = min(member.known - member.computed, most)
        assert self.take(member, member.computed + tokens)
        self.running.append(self.waiting.pop(0))
        self.scheduled.append((member, tokens))
        member.scheduled_s = now_s if member.scheduled_s is None else member.scheduled_s
        return tokens

    def find(self, member: Member) -> list[Block]:
        size = self.config.block_size
        found: list[Block] = []
        while self.config.prefix_caching and (len(found) + 1) * size < member.known:
            text = member.text((len(found) + 1) * size)
            match = next((block for block in self.cached if block.text == text), None)
            if match is None:
                break
            found.append(match)
        return found

    def take(self, member: Member, end: int) -> bool:
        size = self.config.block_size
        needed = self.config.blocks_for(end) - len(member.table)
        if needed > len(self.free):
            return False
        for _ in range(needed):
            block = self.free.pop(0)
            if block.text is not None:
                self.cached.remove(block)
            block.text, block.users = None, 1
            member.table.append(block)
        for at in range(end // size if self.config.prefix_caching else 0):
            if member.table[at].text is None:
                member.table[at].text = member.text((at + 1) * size)
                self.cached.append(member.table[at])
        return True

    def give_back(self, member: Member) -> None:
        for block in reversed(member.table):
            block.users -= 1
            if not block.users:
                self.free.insert(len(self.free) if block.text else 0, block)
        member.table = []

    def end(self, at_s: float) -> None:
        ids: list[str] = []
        firsts: list[FirstToken] = []
        finished: list[Finish] = []
        for member, tokens in self.scheduled:
            member.computed += tokens
            if member.computed < member.known or member in self.gone:
                continue
            request = member.request
            member.known += 1
            member.last_s = at_s
            ids.append(request.id)
            if member.first_s is None:
                member.first_s = at_s
                firsts.append(
                    FirstToken(
                        *(request.id, at_s, member.arrived_s),
                        *(request.prompt_tokens, member.cached),
                    )
                )
            if member.output >= member.limit:
                reason = request.reason if member.limit == request.max_tokens else "length"
                finished.append(member.finish(FinishReason(reason), at_s))
        done = {finish.id for finish in finished}
        for member in [each for each in self.running if each.request.id in done]:
            self.running.remove(member)
            self.give_back(member)
        for member in self.gone:
            self.give_back(member)
        preempted = tuple(each.request.id for each in self.preempted if each not in self.gone)
        self.gone, self.end_s, self.clock_s = [], None, at_s
        outcome = tuple(ids), tuple(firsts), tuple(finished), preempted, self.prefill
        self.outputs.append(Output((at_s,), *outcome))


def by_step(outputs: list[Output]) -> list[Output]:
    """Each step by itself; rows of equal steps taken apart."""
    steps: list[Output] = []
    for output in outputs:
        last = len(output.times_s) - 1
        if last < 1:
            steps.append(output)
            continue
        for at, time_s in enumerate(output.times_s):
            firsts = output.firsts if at == 0 else ()
            finished = output.finished if at == last else ()
            steps.append(output._replace(times_s=(time_s,), firsts=firsts, finished=finished))
    return steps


@dataclass(frozen=True, slots=True)
class Event:
    """At a time: a request comes, one is cancelled, or somebody looks."""

    at_s: float
    request: CoreRequest | None = None
    cancel: str | None = None


def events_of(seed: int) -> list[Event]:
    """Bursts of requests, some of which are cancelled, and looks now and then."""
    rng = random.Random(seed)
    count, length_s = rng.randint(1, 30), rng.choice([0.0, 0.3, 2.0])
    longest = rng.choice([3, 60]), rng.choice([3, 90])
    events: list[Event] = []
    for number in range(count):
        at_s = rng.uniform(0, length_s) if rng.random() < 0.6 else 0.0
        tokens = None if rng.random() < 0.2 else Text(rng.randint(0, 50), rng.randint(1, 3))
        prompt, answer = rng.randint(1, longest[0]), rng.randint(1, longest[1])
        reason = rng.choice([FinishReason.STOP, FinishReason.LENGTH])
        request = CoreRequest(f"r{number}", prompt, answer, reason, tokens)
        events.append(Event(at_s, request))
        if rng.random() < 0.15:
            events.append(Event(at_s + rng.uniform(0, 0.5), cancel=f"r{number}"))
        if rng.random() < 0.3:
            events.append(Event(rng.uniform(0, length_s + 1)))
    return events


EVENTS = st.integers(0, 2**32).map(events_of)
CONFIGS = st.builds(
    CoreConfig,
    max_sequences=st.sampled_from([1, 2, 5, 12]),
    max_batched_tokens=st.sampled_from([1, 3, 16, 24, 40, 128]),
    max_model_tokens=st.just(100),
    kv_blocks=st.sampled_from([1, 1, 3, 20]),
    block_size=st.sampled_from([8, 16, 5]),
    batching=st.sampled_from([BatchingMode.CONTINUOUS] * 3 + list(BatchingMode)),
    jitter=st.sampled_from([0.0, 0.1]),
    front_s=st.sampled_from([0.0, 0.005, 0.04]),
    prefix_caching=st.booleans(),
    long_prefill_tokens=st.sampled_from([0, 7, 20]),
    refuse_oversized=st.just(True),
)


def roomy(config: CoreConfig) -> CoreConfig:
    """With blocks for the longest request and so many more, which are few."""
    least = -(-config.max_model_tokens // config.block_size)
    return dataclasses.replace(config, kv_blocks=least + config.kv_blocks)


def outcome(core: EngineCore | PlainCore, events: list[Event]) -> tuple[list[Output], list[object]]:
    """All steps, and what could be seen of the state at each event."""
    seen: list[object] = []
    outputs: list[Output] = []
    for event in sorted(events, key=lambda each: each.at_s):
        if event.request is not None:
            core.submit(event.request, event.at_s)
        elif event.cancel is not None:
            core.cancel(event.cancel, event.at_s)
        elif isinstance(core, PlainCore):
            core.run(event.at_s)
        else:
            outputs += core.advance(event.at_s)
        if isinstance(core, PlainCore):
            free, counts = len(core.free), (len(core.running), len(core.waiting))
            seen.append(
                (
                    *counts,
                    (core.config.kv_blocks - free) / core.config.kv_blocks,
                    core.prefix_tokens,
                )
            )
        else:
            seen.append((core.running, core.waiting, core.kv_usage, core.prefix_tokens))
    if isinstance(core, PlainCore):
        core.run(1e6)
        return core.outputs, seen
    return outputs + core.advance(1e6), seen


@settings(max_examples=400, deadline=None)
@given(config=CONFIGS, events=EVENTS, jumps=st.booleans())
def test_counting_and_jumping_give_what_a_look_at_everything_gives(
    config: CoreConfig, events: list[Event], jumps: bool
) -> None:
    config = roomy(config)
    core = EngineCore(config, Law(), random.Random(JITTER_SEED), jumps=jumps)
    plain = PlainCore(config)
    (outputs, seen), (expected, expected_seen) = outcome(core, events), outcome(plain, events)
    assert by_step(outputs) == expected
    assert seen == expected_seen


@st.composite
def any_policy(draw: st.DrawFn) -> CoreConfig:
    """A configuration of any engine; prompts that are not divided fit a step."""
    config = roomy(draw(CONFIGS))
    policy, chunks = draw(st.sampled_from(Policy)), draw(st.booleans())
    budget = config.max_batched_tokens if chunks else 64
    mixes = draw(st.booleans())
    return dataclasses.replace(
        config,
        policy=policy,
        chunked_prefill=chunks,
        mixed_chunk=mixes,
        max_batched_tokens=budget,
    )


@settings(max_examples=200, deadline=None)
@given(config=any_policy(), events=EVENTS, law=st.sampled_from([Law(), SumLaw(), SumLaw(0.0141)]))
def test_jumps_give_the_same_steps_under_every_policy(
    config: CoreConfig, events: list[Event], law: Law
) -> None:
    jumped, stepped = (
        outcome(EngineCore(config, law, random.Random(0), jumps=jumps), events)
        for jumps in (True, False)
    )
    assert by_step(jumped[0]) == stepped[0]
    assert jumped[1] == stepped[1]


@settings(max_examples=200, deadline=None)
@given(config=any_policy(), events=EVENTS)
def test_under_every_policy_all_get_their_tokens_once_and_no_block_leaks(
    config: CoreConfig, events: list[Event]
) -> None:
    core = EngineCore(config, Law(), random.Random(0))
    outputs, _ = outcome(core, events)
    requests = {event.request.id: event.request for event in events if event.request}
    seen: dict[str, int] = {}
    for output in by_step(outputs):
        for name in output.ids:
            seen[name] = seen.get(name, 0) + 1
    ends = {finish.id: finish for output in outputs for finish in output.finished}
    assert (core.idle, core.running, core.waiting, core.kv_usage) == (True, 0, 0, 0.0)
    assert set(ends) == set(requests)
    for name, end in ends.items():
        most = min(requests[name].max_tokens, config.max_model_tokens - end.prompt_tokens)
        assert end.output_tokens == seen.get(name, 0)
        assert end.reason is FinishReason.ABORT or end.output_tokens == most


@settings(max_examples=50, deadline=None)
@given(config=CONFIGS, events=EVENTS, least_s=st.sampled_from([0.0, 0.0141]))
def test_the_terms_of_a_law_are_the_law(
    config: CoreConfig, events: list[Event], least_s: float
) -> None:
    config = dataclasses.replace(roomy(config), jitter=0.0)
    submits = [event for event in events if event.request is not None]
    law = SumLaw(least_s)
    told, untold = (
        outcome(EngineCore(config, each, random.Random(0)), submits)[0]
        for each in (law, UntoldLaw(law))
    )
    assert [time_s for output in told for time_s in output.times_s] == pytest.approx(
        [time_s for output in untold for time_s in output.times_s]
    )
