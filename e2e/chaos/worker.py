"""The clients of the chaos driver in Python: Hazelcast's stock client, told what to do line by line (JSON). See worker.go."""

import json
import logging
import queue
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

# What the client may have sent twice: the first of them may have been taken.
REPEATED = ("tryLock", "unlock", "sqlUpdate")

output = threading.Lock()


class TookTooLong(Exception):
    """The client has not answered within the driver's limit."""


def wait(future, limit_s):
    """The result of an operation; its outcome is unknown when that does not come in time."""
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    if not done.wait(limit_s):
        raise TookTooLong()
    return future.result()


class Client:
    """One client and its threads, which make one operation at a time each. Locks belong to threads."""

    def __init__(self, op, limit_s):
        self.limit_s = limit_s
        self.client = hazelcast.HazelcastClient(
            client_name=op["client"],
            cluster_members=op["value"].split(","),
            smart_routing=op.get("routing") != "unisocket",
            invocation_timeout=limit_s,
            cluster_connect_timeout=600,
        )
        self.maps = {}
        self.threads = {}

    def ask(self, op):
        """Has the thread of an operation make it."""
        number = op.get("thread", 0)
        if number not in self.threads:
            self.threads[number] = asked = queue.SimpleQueue()
            threading.Thread(target=self.serve, args=(asked,), daemon=True).start()
        self.threads[number].put(op)

    def serve(self, asked):
        for op in iter(asked.get, None):
            answer(op, lambda: self.make(op))

    def close(self):
        for asked in self.threads.values():
            asked.put(None)
        self.client.shutdown()
        return None, True

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
        if kind == "sqlUpdate":
            text = f"UPDATE {op['map']} SET this = ? WHERE __key = ?"
            return None, wait(self.client.sql.execute(text, value, key), self.limit_s).update_count() > 0
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


def kind_of(error):
    """The kind of an error, as all languages name it."""
    code = getattr(error, "_code", None)
    return type(error).__name__.removesuffix("Error") if code is None else f"SQL {code}"


def answer(op, make):
    """Writes what an operation's result is."""
    try:
        value, truth = make()
        result = {"outcome": "acknowledged", "value": value or "", "truth": bool(truth)}
    except REFUSED as error:
        result = {"outcome": "unknown" if op["kind"] in REPEATED else "refused", "error": kind_of(error)}
    except Exception as error:
        logging.warning("%s: %r", op, error)
        result = {"outcome": "unknown", "error": kind_of(error)}
    with output:
        print(json.dumps({"id": op["id"], **result}), flush=True)


def main():
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    limit_s = float(sys.argv[1])
    clients = {}

    def connect(op):
        clients[op["client"]] = Client(op, limit_s)
        return None, True

    print("ready", flush=True)
    for line in sys.stdin:
        op = json.loads(line)
        if op["kind"] in ("connect", "close"):
            # A member may take its time, while others go on.
            make = connect if op["kind"] == "connect" else lambda op: clients.pop(op["client"]).close()
            threading.Thread(target=answer, args=(op, lambda op=op, make=make: make(op)), daemon=True).start()
        else:
            clients[op["client"]].ask(op)


if __name__ == "__main__":
    main()
