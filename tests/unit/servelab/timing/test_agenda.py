"""What happens when, next first."""

import math

from servelab.timing import agenda, trajectory


def flow(start_s: float) -> trajectory.Flow:
    return trajectory.Flow("f", (trajectory.wait(1.0),), start_s, 0, start_s=start_s)


def test_what_is_due_at_one_time_comes_together_and_in_order() -> None:
    found = agenda.Agenda()
    for at_s, thing in ((2.0, "late"), (1.0, "a"), (1.0, "b")):
        found.push(at_s, thing, 3)
    assert list(found.due()) == ["a", "b"]
    assert found.next_s == 2.0


def test_what_is_noted_for_the_same_time_meanwhile_is_due_too() -> None:
    found, taken = agenda.Agenda(), []
    found.push(1.0, "a", 2)
    for thing in found.due():
        taken.append(thing)
        if thing == "a":
            found.push(1.0, "b", 2)
    assert taken == ["a", "b"]


def test_an_entry_counts_while_its_flow_turns_then() -> None:
    found, one = agenda.Agenda(), flow(3.0)
    found.push(3.0, one, 1)
    found.push(4.0, "link", 1)
    assert found.wake_s() == 3.0
    one.start_s = 5.0
    assert found.wake_s() == 4.0


def test_never_is_not_noted() -> None:
    found = agenda.Agenda()
    found.push(math.inf, "a", 1)
    assert found.next_s == math.inf
    assert list(found.due()) == []


def test_what_is_out_of_date_is_cleared_away() -> None:
    found, one = agenda.Agenda(), flow(0.0)
    for n in range(10_000):
        one.start_s = float(n)
        found.push(float(n), one, 1)
    assert len(found._entries) <= agenda.SLACK * (agenda.ROOM + 1)
    assert found.wake_s() == 9999.0
