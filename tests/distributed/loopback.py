"""A backend for worlds of one process: what a group of one does, and nothing of how processes meet."""

from tensorplug.plugin import Communicator, ProcessGroupBackend, Request, hookimpl


class Done(Request):
    def test(self):
        return True


class Alone(Communicator):
    """Each collective is a copy, or nothing."""

    rank, size = 0, 1

    def all_reduce(self, array, reduction):
        return Done()

    def reduce(self, array, reduction, root):
        return Done()

    def broadcast(self, array, root):
        return Done()

    def all_gather(self, output, array):
        output.reshape(-1)[...] = array.reshape(-1)
        return Done()

    def gather(self, output, array, root):
        return self.all_gather(output, array)

    def scatter(self, output, array, root):
        return self.all_gather(output, array)

    def reduce_scatter(self, output, array, reduction):
        return self.all_gather(output, array)

    def all_to_all(self, output, array, output_counts, counts):
        return self.all_gather(output, array)

    def send(self, array, rank, tag):
        raise AssertionError("there is nobody else")

    receive = send

    def barrier(self):
        return Done()

    def subgroup(self, ranks, key):
        return Alone()


class Loopback(ProcessGroupBackend):
    name, device_types, priority = "loopback", frozenset(["cpu"]), -1

    def launched(self):
        return 0, 1

    def connect(self, rendezvous):
        return Alone()


class Plugin:
    name = "loopback"

    def __init__(self, *backends):
        self.backends = backends or (Loopback(),)

    @hookimpl
    def tensorplug_process_groups(self):
        return self.backends
