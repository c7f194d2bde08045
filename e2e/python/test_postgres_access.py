"""Who is let in, how many, and what happens to strangers."""

import socket
import struct
import time

import psycopg
import pytest

from member import Member
from postgres_tools import dsn, psql

USERS = """
hazelcast:
  security:
    enabled: true
    realms:
      - name: users
        authentication:
          simple:
            users:
              - username: ann
                password: 'se''cret'
              - username: bob
                password: hazel
    client-authentication:
      realm: users
  properties:
    filbert.postgres.connections.max: "20"
"""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A member that asks for passwords."""
    path = tmp_path_factory.mktemp("config") / "member.yaml"
    path.write_text(USERS)
    with Member(config=path) as running:
        yield running


def test_only_the_right_password_opens(guarded):
    with psycopg.connect(dsn(guarded), password="se'cret", autocommit=True) as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("ann",)
    messages = []
    for user, password in [("ann", "wrong"), ("stranger", "hazel"), ("bob", "se'cret")]:
        with pytest.raises(psycopg.OperationalError) as raised:
            psycopg.connect(dsn(guarded, user=user), password=password)
        messages.append(str(raised.value).split("FATAL:")[1].replace(user, "user"))
    assert len(set(messages)) == 1 and "password authentication failed" in messages[0]
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(dsn(guarded))
    assert psql(guarded, "SELECT 1", PGPASSWORD="se'cret").returncode == 0


def test_one_connection_too_many_is_told(guarded):
    connections = []
    with pytest.raises(psycopg.OperationalError, match="too many clients"):
        for _ in range(30):
            connections.append(psycopg.connect(dsn(guarded, user="bob"), password="hazel"))
    assert len(connections) == 20
    for connection in connections:
        connection.close()


def test_strangers_are_sent_away(member):
    for request in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x00\x01", struct.pack(">ii", 8, 80877103), b"CP2"):
        with socket.create_connection(("127.0.0.1", member.postgres_port), timeout=30) as stranger:
            stranger.sendall(request)
            stranger.shutdown(socket.SHUT_WR)
            answer = b""
            while part := stranger.recv(1000):
                answer += part
            assert len(answer) < 1000
    assert psql(member, "SELECT 1").returncode == 0


def test_five_thousand_idle_connections_take_little_memory(member):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 5000
    if hard < wanted + 500:
        pytest.skip("this machine does not allow enough open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted + 500), hard))
    startup = b"\x00\x03\x00\x00user\x00ann\x00\x00"
    startup = struct.pack(">i", len(startup) + 4) + startup

    def resident():
        with open(f"/proc/{member.process_id}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    before = resident()
    sockets = []
    try:
        for _ in range(wanted):
            idle = socket.create_connection(("127.0.0.1", member.postgres_port), timeout=30)
            idle.sendall(startup)
            sockets.append(idle)
        for idle in sockets:
            answer = b""
            while not answer.endswith(b"Z\x00\x00\x00\x05I"):
                answer += idle.recv(4096)
        grown = (resident() - before) / wanted
        assert grown < 32, f"{grown} KiB each"
        with psycopg.connect(dsn(member), autocommit=True) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        for idle in sockets:
            idle.close()
    time.sleep(0.1)


def test_a_member_that_stops_says_so():
    with Member() as stopping:
        connection = psycopg.connect(dsn(stopping), autocommit=True)
        connection.execute("SELECT 1")
        assert stopping.stop() == 0
        with pytest.raises((psycopg.errors.AdminShutdown, psycopg.OperationalError)):
            connection.execute("SELECT 1")
