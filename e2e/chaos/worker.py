"""A client of the chaos driver: Hazelcast's stock Python client, told what to do line by line (JSON), one operation at a time."""

import json
import logging
import sys
import threading

import hazelcast
from hazelcast import errors

# A cluster divides its partitions into so many groups.
GROUPS = 12

# Errors that say that nothing was made: the request was not taken, however often the client sent it.
REFUSED = (
    errors.WrongTargetError,
    errors.TargetNotMemberError,
    errors.HazelcastInstanceNotActiveError,
    errors.RetryableHazelcastError,
    errors.PartitionMigratingError,
)


class TookTooLong(Exception):
    """The client has not answered within the driver's limit."""


def wait(future, limit_s):
    """The result of an operation; its outcome is unknown when that does not come in time."""
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    if not done.wait(limit_s):
        raise TookTooLong()
    return future.result()


class Worker:
    def __init__(self, name, members, limit_s):
        self.limit_s = limit_s
        self.client = hazelcast.HazelcastClient(
            client_name=name, cluster_members=members, invocation_timeout=limit_s, cluster_connect_timeout=600
        )
        self.maps = {}

    def map(self, name):
        if name not in self.maps:
            self.maps[name] = self.client.get_map(name)
        return self.maps[name]

    def leader(self, key):
        """The address of the member that leads a key."""
        partitions = self.client.partition_service
        owner = partitions.get_partition_owner(partitions.get_partition_id(key))
        member = self.client.cluster_service.get_members(lambda each: each.uuid == owner)
        return f"{member[0].address.host}:{member[0].address.port}" if owner and member else None

    def make(self, op):
        """Makes an operation; a pair of value and truth, as the driver's results have them."""
        kind, key, value = op["kind"], op.get("key"), op.get("value")
        if kind == "leader":
            return self.leader(key), True
        if kind == "group":
            return str(self.client.partition_service.get_partition_id(key) % GROUPS), True
        target = self.map(op["map"])
        if kind == "get":
            return wait(target.get(key), self.limit_s), True
        if kind == "put":
            return wait(target.put(key, value), self.limit_s), True
        if kind == "set":
            return wait(target.set(key, value), self.limit_s), True
        if kind == "putIfAbsent":
            return wait(target.put_if_absent(key, value), self.limit_s), True
        if kind == "replaceIfSame":
            return None, wait(target.replace_if_same(key, op["expected"], value), self.limit_s)
        if kind == "remove":
            return wait(target.remove(key), self.limit_s), True
        if kind == "tryLock":
            waits_s = op.get("wait_ms", 0) / 1000
            return None, wait(target.try_lock(key, timeout=waits_s), self.limit_s + waits_s)
        if kind == "unlock":
            try:
                wait(target.unlock(key), self.limit_s)
                return None, True
            except errors.IllegalMonitorStateError:
                return None, False
        raise ValueError(kind)

    def answer(self, op):
        try:
            value, truth = self.make(op)
            return {"outcome": "acknowledged", "value": value or "", "truth": bool(truth)}
        except REFUSED as error:
            return {"outcome": "refused", "error": type(error).__name__}
        except Exception as error:
            logging.warning("%s: %r", op, error)
            return {"outcome": "unknown", "error": type(error).__name__}


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    name, members, limit_s = sys.argv[1:]
    worker = Worker(name, members.split(","), float(limit_s))
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(worker.answer(json.loads(line))), flush=True)
    worker.client.shutdown()


if __name__ == "__main__":
    main()
