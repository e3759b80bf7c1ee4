"""vLLM's rules as plainly as they can be written: each step looks at every sequence and block.

It decides what the core decides, which counts instead of looking; tests hold one to the other.
"""

import math
import random
from dataclasses import dataclass, field

from modelserve.api.spec import BatchingMode
from servelab.engine.core import laws
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.sequences import CoreRequest, Finish, FinishReason, FirstToken, Output


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
        """Tokens made so far."""
        return self.known - self.request.prompt_tokens

    def text(self, tokens: int) -> tuple[int, ...]:
        """Its first tokens; a text of its own where it has none."""
        source = self.request.tokens
        if source is None:
            return (hash(self.request.id), *range(1, tokens))
        return tuple(source.ids(0, tokens))

    def finish(self, reason: FinishReason, at_s: float) -> Finish:
        """Its end."""
        return Finish(
            *(self.request.id, reason, at_s, self.arrived_s, self.scheduled_s),
            *(self.first_s, self.last_s, self.request.prompt_tokens, self.output),
            *(self.preemptions, self.cached),
        )


class PlainCore:
    """vLLM's rules without any thrift."""

    def __init__(self, config: CoreConfig, law: laws.StepLaw, rng: random.Random) -> None:
        self.config = config
        self.law = law
        self.rng = rng
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
        """Queue a request, as ``EngineCore.submit``."""
        self.run(now_s, start_now=False)
        limit = min(request.max_tokens, self.config.max_model_tokens - request.prompt_tokens)
        self.waiting.append(Member(request, now_s, limit, request.prompt_tokens))
        if self.end_s is None:
            self.clock_s = max(self.clock_s, now_s)

    def cancel(self, request_id: str, now_s: float) -> None:
        """Drop a request."""
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
        """Go on to ``now_s``; ``start_now``: begin a step that is due just then."""
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
        """When the next step begins; never if there is nothing to do."""
        config = self.config
        if self.running:
            return self.clock_s
        delay_s = config.front_s
        if config.batching == BatchingMode.DYNAMIC and len(self.waiting) < config.slots:
            delay_s = max(delay_s, config.gather_s)
        return max(self.clock_s, self.waiting[0].arrived_s + delay_s)

    def start(self, start_s: float) -> None:
        """Choose who is in the step."""
        config = self.config
        self.most_static = self.most_static if self.running else 0
        self.scheduled, self.preempted = [], []
        budget = most = config.max_batched_tokens
        if config.long_prefill_tokens and (count := len(self.running) + len(self.waiting)) > 1:
            share = budget // count if config.fair_prefills else 0
            most = max(config.long_prefill_tokens, share)
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
        """How long the step takes."""
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
        step_s = self.law.step_s(
            *(count, sum(member.known for member in decodes), self.prefill),
            *(sum(member.computed for member, _ in prompts), max(1, len(prompts))),
        )
        jitter = self.config.jitter
        if jitter:
            step_s *= math.exp(self.rng.gauss(0.0, jitter) - jitter * jitter / 2)
        return step_s

    def make_room(self, member: Member, end: int) -> bool:
        """Blocks up to ``end``, if need be those of others; False if it lost its own."""
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
        """Take the first that waits, for at most so many tokens; how many it gets."""
        member, config = self.waiting[0], self.config
        if len(self.running) >= config.slots or member.arrived_s + config.front_s > now_s:
            return 0
        found = self.find(member)
        new = sum(1 for block in found if not block.users)
        first = min(member.known, len(found) * config.block_size + most)
        needed = config.blocks_for(member.known if config.reserve_prompts else first)
        spare = config.spare_blocks if self.running else 0
        if needed - len(found) + new + spare > len(self.free):
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
        """Blocks of the cache that begin as its text does."""
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
        """Blocks up to ``end``; False if there are too few."""
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
        """Let its blocks go."""
        for block in reversed(member.table):
            block.users -= 1
            if not block.users:
                self.free.insert(len(self.free) if block.text else 0, block)
        member.table = []

    def end(self, at_s: float) -> None:
        """Hand out the step's tokens."""
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
