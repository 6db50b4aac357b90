"""submit.local.placement: no core twice, in order, nobody is passed over for ever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from submit.local.placement import Asking, is_possible, place, without
from submit.local.records import Seat, Wish

ROOM = Seat(cores=(0, 1, 2, 3), gpus=(0, 1), memory_mib=1000)


def asking(seq: int, cores: int, waiting: int, gpus: int = 0, memory_mib: int = 1) -> Asking:
    return Asking(
        seq=seq, wish=Wish(cores=cores, gpus=gpus, memory_mib=memory_mib), waiting=waiting
    )


ROOMS = st.builds(
    Seat,
    cores=st.sets(st.integers(0, 9)).map(lambda found: tuple(sorted(found))),
    gpus=st.sets(st.integers(0, 3)).map(lambda found: tuple(sorted(found))),
    memory_mib=st.integers(0, 100),
)
QUEUES = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 6), st.integers(0, 2), st.integers(1, 60)),
    max_size=6,
).map(lambda many: [asking(seq, *one) for seq, one in enumerate(many)])


@given(room=ROOMS, queue=QUEUES)
def test_nothing_is_given_twice_and_each_has_what_it_asked_for(
    room: Seat, queue: list[Asking]
) -> None:
    starts = place(room, queue)
    cores = [core for _, seat in starts for core in seat.cores]
    gpus = [gpu for _, seat in starts for gpu in seat.gpus]
    assert len(set(cores)) == len(cores)
    assert len(set(gpus)) == len(gpus)
    assert set(cores) <= set(room.cores)
    assert set(gpus) <= set(room.gpus)
    assert sum(seat.memory_mib for _, seat in starts) <= room.memory_mib
    for seq, seat in starts:
        wish = queue[seq].wish
        assert (len(seat.cores), len(seat.gpus)) == (wish.cores, wish.gpus)
        assert seat.memory_mib == wish.memory_mib
    started = [seq for seq, _ in starts]
    assert started == sorted(started)
    assert all(started.count(one.seq) <= one.waiting for one in queue)


@given(room=ROOMS, queue=QUEUES)
def test_an_earlier_experiment_is_never_worse_off_for_a_later_one(
    room: Seat, queue: list[Asking]
) -> None:
    for length in range(len(queue)):
        alone = place(room, queue[:length])
        assert place(room, queue)[: len(alone)] == alone


@given(room=ROOMS, queue=QUEUES)
def test_what_could_start_does(room: Seat, queue: list[Asking]) -> None:
    first = next((one for one in queue if one.waiting), None)
    starts = place(room, queue)
    if first is not None:
        assert is_possible(room, first.wish) == (bool(starts) and starts[0][0] == first.seq)


def test_a_run_that_waits_for_room_holds_what_it_can_have() -> None:
    """Three cores are wanted, two are free: the small runs behind do not take them away again."""
    assert place(ROOM, [asking(0, 2, 1), asking(1, 3, 1), asking(2, 1, 2)]) == [
        (0, Seat(cores=(0, 1), memory_mib=1))
    ]


def test_a_run_that_waits_for_a_gpu_leaves_the_cores_that_it_does_not_want() -> None:
    starts = place(ROOM, [asking(0, 1, 3, gpus=1), asking(1, 1, 9)])
    assert [seq for seq, _ in starts] == [0, 0, 1]
    assert without(ROOM, starts[0][1]).gpus == (1,)
