"""What needs no second process: arguments, groups, work, time-outs, and that the suite finds faults."""

import warnings
from datetime import timedelta

import pytest

import tensorplug as tp
import tensorplug.distributed as dist
from tensorplug.core import plugins
from tensorplug.testing import collectives

from .loopback import Alone, Done, Loopback, Plugin


class Never:
    """A request that is not complete before it is told to be."""

    source, complete = -1, False

    def test(self):
        return self.complete


class Trio(Alone):
    """Rank 1 of three; the others are not there."""

    rank, size = 1, 3

    def __init__(self):
        self.request, self.said, self.told = Never(), [], {}

    def all_reduce(self, array, reduction):
        return self.request

    def barrier(self):
        return self.request

    def announce(self, text):
        self.said.append(text)

    def announced(self):
        return self.told


@pytest.fixture
def join():
    """Joins a world of a communicator of ours, and leaves it."""
    joined = []

    def join(communicator=None, **options):
        class Backend(Loopback):
            def launched(self):
                return communicator.rank, communicator.size

            def connect(self, rendezvous):
                return communicator

        joined.append(plugins.register(Plugin(Backend() if communicator else Loopback())))
        dist.init_process_group("loopback", **options)
        return communicator

    yield join
    if dist.is_initialized():
        for left in dist.groups._groups.values():
            left._broken = False
            left._pending.clear()
        dist.destroy_process_group()
    for record in joined:
        plugins.unregister(record.name)


def test_without_a_world_each_call_says_what_is_missing():
    message = "Default process group has not been initialized, please make sure to call init_process_group"
    for call in (
        dist.get_rank,
        dist.get_world_size,
        dist.barrier,
        dist.destroy_process_group,
        lambda: dist.all_reduce(tp.ones(1)),
        lambda: dist.new_group([0]),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert not dist.is_initialized()
    assert dist.group.WORLD is None


def test_the_world(join):
    join(timeout=timedelta(seconds=5))
    assert dist.is_initialized()
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "loopback")
    assert dist.get_backend_config() == "cpu:loopback"
    assert dist.group.WORLD is dist.GroupMember.WORLD
    assert dist.get_process_group_ranks(dist.group.WORLD) == [0]
    with pytest.raises(ValueError, match="initialize the default process group twice"):
        dist.init_process_group("loopback")
    part = dist.new_group([0], group_desc="alone")
    assert (part.rank(), part.size(), part.group_desc) == (0, 1, "alone")
    assert dist.get_pg_count() == 2
    dist.destroy_process_group(part)
    with pytest.raises(ValueError, match="is not registered"):
        dist.get_rank(part)
    assert dist.get_rank(dist.GroupMember.NON_GROUP_MEMBER) == -1
    assert dist.all_reduce(tp.ones(1), group=dist.GroupMember.NON_GROUP_MEMBER) is None


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: dist.all_reduce([1.0]),
            TypeError,
            "Expected parameter `tensor` of type torch.Tensor",
        ),
        (lambda: dist.all_reduce(tp.ones(2), "sum"), TypeError, "expected a ReduceOp"),
        (
            lambda: dist.all_reduce(tp.ones(2), dist.ReduceOp.BAND),
            RuntimeError,
            "non-integral dtype",
        ),
        (
            lambda: dist.all_reduce(tp.ones(2, dtype=tp.complex64), dist.ReduceOp.MAX),
            ValueError,
            "does not support ReduceOp.MAX on complex tensors",
        ),
        (
            lambda: dist.all_reduce(tp.ones(2).int(), dist.ReduceOp.AVG),
            ValueError,
            "floating-point",
        ),
        (
            lambda: dist.all_reduce(tp.ones(2, device="meta")),
            RuntimeError,
            "No backend type associated",
        ),
        (lambda: dist.all_gather(tp.ones(2), tp.ones(2)), TypeError, "List\\[torch.Tensor\\]"),
        (lambda: dist.all_gather([], tp.ones(2)), RuntimeError, "0 tensors, the group 1 processes"),
        (lambda: dist.all_gather([tp.ones(3)], tp.ones(2)), RuntimeError, "shape \\(3,\\)"),
        (lambda: dist.all_gather([tp.ones(2).int()], tp.ones(2)), ValueError, "different dtypes"),
        (
            lambda: dist.all_gather_into_tensor(tp.ones(5), tp.ones(2)),
            RuntimeError,
            "world_size times input tensor size",
        ),
        (lambda: dist.broadcast(tp.ones(2), 1), RuntimeError, "invalid rank 1: the world has 1"),
        (lambda: dist.broadcast(tp.ones(2)), ValueError, "Must specify src or group_src"),
        (lambda: dist.broadcast(tp.ones(2), 0, group_src=0), ValueError, "both group_src and src"),
        (lambda: dist.gather(tp.ones(2)), ValueError, "must be specified on destination rank"),
        (lambda: dist.scatter(tp.ones(2)), ValueError, "must be specified on source rank"),
        (lambda: dist.scatter(tp.ones(2), [tp.ones(3)]), RuntimeError, "shape \\(3,\\)"),
        (lambda: dist.reduce_scatter_tensor(tp.ones(2), tp.ones(3)), RuntimeError, "world size"),
        (lambda: dist.all_to_all_single(tp.ones(2), tp.ones(2), [1]), RuntimeError, "Split sizes"),
        (
            lambda: dist.all_to_all_single(tp.ones(2), tp.ones(2), [1, 1]),
            RuntimeError,
            "splits not equal",
        ),
        (lambda: dist.send(tp.ones(2), 0), ValueError, "should not be the same as the rank"),
        (lambda: dist.send(tp.ones(2), 7), RuntimeError, "invalid rank 7"),
        (lambda: dist.recv(tp.ones(2), tag=-1), ValueError, "tag must be"),
        (lambda: dist.batch_isend_irecv([]), ValueError, "Invalid ``p2p_op_list``"),
        (lambda: dist.P2POp(dist.send, tp.ones(1), 0), ValueError, "Invalid ``op``"),
        (lambda: dist.new_group([0, 0]), ValueError, "duplicates"),
        (lambda: dist.new_group([1]), ValueError, "within the world_size"),
        (lambda: dist.new_group([]), ValueError, "at least 1"),
        (lambda: dist.all_gather_object([], 1), ValueError, "an entry for each of 1"),
        (lambda: dist.init_process_group("pigeons"), ValueError, "twice"),
    ],
)
def test_bad_input_is_refused_before_anything_is_sent(join, call, error, message):
    join()
    with pytest.raises(error, match=message):
        call()
    assert dist.group.WORLD._number == 0


def test_an_unknown_backend_names_those_that_are_there(join):
    join()
    dist.destroy_process_group()
    with pytest.raises(
        ValueError, match=r"Unknown backend type 'pigeons'; installed are: .*loopback"
    ):
        dist.init_process_group("pigeons")


def test_asynchronous_work(join):
    trio = join(Trio())
    t = tp.ones(2)
    work = dist.all_reduce(t, async_op=True)
    future = work.get_future()
    tripled = future.then(lambda done: done.value()[0] * 3)
    assert not work.is_completed()
    assert not future.done()
    assert "pending" in repr(work)
    trio.request.complete = True
    assert tripled.wait().tolist() == [3.0, 3.0]
    assert work.is_completed()
    assert work.is_success()
    assert work.result()[0] is t
    assert work.wait()


def test_work_that_nobody_waits_for_is_let_go_of(join):
    join()
    for _ in range(300):
        dist.all_reduce(tp.ones(1), async_op=True)
    assert len(dist.group.WORLD._pending) <= 64


def test_a_time_out_names_the_collective_and_the_ranks(join):
    trio = join(Trio(), timeout=timedelta(seconds=0.02))
    trio.told = {0: "1 all_reduce"}
    message = (
        r"all_reduce of 'loopback' on rank 1 timed out after 0.02 s .collective 1 of the group.; "
        r"ranks that arrived: 0, 1; ranks that did not arrive: 2$"
    )
    with pytest.raises(dist.DistBackendError, match=message):
        dist.all_reduce(tp.ones(2))
    assert trio.said == ["1 all_reduce"]
    trio.told = {0: "2 broadcast", 2: "5 barrier"}
    message = r"arrived: 1, 2; ranks that did not arrive: none; rank 0 is in broadcast instead$"
    with pytest.raises(RuntimeError, match=message):
        dist.monitored_barrier()


def test_a_time_out_without_news_says_so(join):
    trio = join(Trio())
    trio.announced = lambda: None
    work = dist.all_reduce(tp.ones(1), async_op=True)
    with pytest.raises(dist.DistBackendError, match=r"after 0.01 s; the backend cannot tell"):
        work.wait(timedelta(seconds=0.01))
    assert isinstance(work.exception(), dist.DistBackendError)
    assert not work.is_success()


def test_a_failing_backend_is_named(join):
    class Failing(Done):
        def test(self):
            raise RuntimeError("the cable is out")

    trio = join(Trio())
    trio.request = Failing()
    with pytest.raises(
        dist.DistBackendError, match="all_reduce of 'loopback' failed: the cable is out"
    ):
        dist.all_reduce(tp.ones(1))


def test_collectives_count_as_writes(join):
    join()
    x = tp.ones(3, requires_grad=True)
    y = x * 2
    z = y * y
    dist.all_reduce(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


@pytest.mark.parametrize(
    "scheme", ["carrier://pigeon", "env://", "tcp://localhost:1", "file:///tmp/x"]
)
def test_worlds_that_cannot_be_found(join, scheme, monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)

    class Backend(Loopback):
        def launched(self):
            return None

    record = plugins.register(Plugin(Backend()))
    try:
        with pytest.raises((ValueError, RuntimeError), match=r"rendezvous|not in files"):
            dist.init_process_group("loopback", init_method=scheme)
    finally:
        plugins.unregister(record.name)
    assert not dist.is_initialized()


def test_what_follows_a_future_fails_with_its_own_error(join):
    join()
    future = dist.all_reduce(tp.ones(2), async_op=True).get_future()

    def fail(done):
        raise KeyError(str(done.value()[0].tolist()))

    following = future.then(fail)
    for last in (following, following.then(lambda done: done.value())):
        with pytest.raises(KeyError, match=r"\[1.0, 1.0\]"):
            last.wait()
    assert future.then(lambda done: len(done.value())).wait() == 1


def test_senders_are_told_by_their_rank_in_the_world():
    """A group's members have other numbers in it."""
    request, group = Done(), dist.ProcessGroup("9", [3, 5, 8], "x", {}, timedelta(seconds=1))
    for source, rank in ((0, 3), (1, 5), (2, 8)):
        request.source = source
        work = dist.Work(group, "receive", request, Alone())
        with pytest.raises(RuntimeError, match="only of a message that was received"):
            work.source_rank()
        assert work.wait()
        assert work.source_rank() == rank


@pytest.mark.parametrize(
    ("given", "environment", "place"),
    [
        ({"init_method": "tcp://host:7", "rank": 1, "world_size": 2}, {}, (1, 2, "host", 7)),
        ({"init_method": "tcp://host:7?rank=1&world_size=2"}, {}, (1, 2, "host", 7)),
        ({"init_method": "tcp://host:7?rank=0&world_size=2", "rank": 1}, {}, (1, 2, "host", 7)),
        ({}, {"RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": "7"}, (1, 2, "", 7)),
        ({"rank": 1}, {"RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": "7"}, (1, 2, "", 7)),
        ({"init_method": "env://?rank=1"}, {"WORLD_SIZE": "2", "MASTER_PORT": "7"}, (1, 2, "", 7)),
        ({}, {"RANK": "0", "WORLD_SIZE": "1"}, (0, 1, "", 0)),
    ],
)
def test_where_a_world_meets(given, environment, place, monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    seen = []

    class Backend(Loopback):
        def launched(self):
            return None

        def connect(self, rendezvous):
            seen.append((rendezvous.rank, rendezvous.size, rendezvous.address, rendezvous.port))
            raise KeyError("far enough")

    record = plugins.register(Plugin(Backend()))
    try:
        with pytest.raises(KeyError, match="far enough"):
            dist.init_process_group("loopback", **given)
    finally:
        plugins.unregister(record.name)
    assert seen == [place]


def test_groups_make_one_communicator_where_one_serves_two_device_types():
    class Both(Loopback):
        device_types = frozenset(["cpu", "meta"])

        def connect(self, rendezvous):
            return communicator

    class Counting(Alone):
        def __init__(self):
            self.made, self.closed = [], 0

        def subgroup(self, ranks, key):
            self.made.append(Counting())
            return self.made[-1]

        def close(self):
            self.closed += 1

    communicator = Counting()
    record = plugins.register(Plugin(Both()))
    try:
        dist.init_process_group("loopback")
        for make in (
            lambda: dist.new_group([0]),
            lambda: dist.split_group(split_ranks=[[0]]),
            lambda: dist.new_group([0], use_local_synchronization=True),
        ):
            communicator.made.clear()
            group = make()
            assert set(group._communicators) == {"cpu", "meta"}
            assert set(group._communicators.values()) == set(communicator.made)
            assert len(communicator.made) == 1
        dist.destroy_process_group()
        assert communicator.closed == 1
    finally:
        plugins.unregister(record.name)


# --- the conformance suite, on a backend that is right and on some that are not ---


def test_the_suite_passes_in_a_world_of_one(join):
    join()
    count, failures = collectives.run(every=7)
    assert count > 200
    assert failures == []


def planted(**methods):
    return type("Planted", (Alone,), methods)()


FAULTS = {
    "all_gather that writes nothing": planted(all_gather=lambda self, output, array: Done()),
    "scatter that swaps two elements": planted(
        scatter=lambda self, output, array, root: (
            output.reshape(-1).__setitem__(slice(None), array.reshape(-1)[::-1]), Done(),
        )[1]
    ),
    "reduce that changes bytes": planted(
        reduce=lambda self, array, reduction, root: (
            array.view("u1").__ior__(1) if array.dtype == "int8" and array.ndim else None, Done(),
        )[1]
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_the_suite_finds_a_planted_fault(join, fault):
    join(FAULTS[fault])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, failures = collectives.run(every=5)
    assert any(failure.startswith(fault.split()[0]) for failure in failures)
