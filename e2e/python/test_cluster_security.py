"""Members that show each other certificates, made as the guide says, with a secret and without: clients are served, and strangers do not join."""

import pathlib
import subprocess

import hazelcast
import pytest

from cluster import Cluster, free_ports, status
from member import eventually, program

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "guide" / "cluster.md"


def make_certificates(directory):
    """Runs the commands of the guide."""
    section = GUIDE.read_text().split("## Security between members", 1)[1]
    commands = section.split("```sh\n", 1)[1].split("```", 1)[0]
    subprocess.run(["sh", "-e", "-c", commands], cwd=directory, check=True, capture_output=True)
    return {
        "FILBERT_CLUSTER_TLS_AUTHORITY": directory / "ca.pem",
        "FILBERT_CLUSTER_TLS_CERTIFICATE": directory / "db1.pem",
        "FILBERT_CLUSTER_TLS_KEY": directory / "db1.key",
    }


@pytest.mark.parametrize("with_secret", [False, True], ids=["certificates", "with a secret"])
def test_members_with_certificates_are_a_cluster_and_strangers_are_refused(tmp_path, monkeypatch, with_secret):
    members, strangers = tmp_path / "members", tmp_path / "strangers"
    for directory in (members, strangers):
        directory.mkdir()
    for name, file in make_certificates(members).items():
        monkeypatch.setenv(name, str(file))
    monkeypatch.setenv("FILBERT_CLUSTER_TLS_NAME", "filbert.example.org")
    if with_secret:
        (tmp_path / "secret").write_text("open sesame\n")
        monkeypatch.setenv("FILBERT_SECRET_FILE", str(tmp_path / "secret"))
    with Cluster(3) as cluster:
        first = cluster.members[0]
        eventually(lambda: len(status(first)["members"]) == 3 and status(first)["replicas"]["held"] == 3)
        client = hazelcast.HazelcastClient(cluster_members=[first.address])
        numbers = client.get_map("numbers").blocking()
        for n in range(200):
            numbers.set(n, n)
        assert [n for n in range(200) if numbers.get(n) != n] == []
        client.shutdown()

        # A member without certificates ends with an error that says why.
        (port,) = free_ports(1)
        join = ["--join", ",".join(cluster.join), "--member-listen", f"127.0.0.1:{port}", "--listen", "127.0.0.1:0"]
        for name in ("AUTHORITY", "CERTIFICATE", "KEY", "NAME"):
            monkeypatch.delenv(f"FILBERT_CLUSTER_TLS_{name}")
        code, _, errors = program(*join)
        assert code != 0 and "the peer uses TLS, this member does not" in errors, errors
        assert len(status(first)["members"]) == 3


def test_certificates_that_cannot_be_used_end_the_start(tmp_path, monkeypatch):
    for name in ("members", "strangers"):
        (tmp_path / name).mkdir()
    files = make_certificates(tmp_path / "members")
    other = make_certificates(tmp_path / "strangers")
    join = ["--join", "127.0.0.1:1", "--member-listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"]
    authority, certificate, key = (
        ["--member-tls-authority", str(files["FILBERT_CLUSTER_TLS_AUTHORITY"])],
        ["--member-tls-certificate", str(files["FILBERT_CLUSTER_TLS_CERTIFICATE"])],
        ["--member-tls-key", str(files["FILBERT_CLUSTER_TLS_KEY"])],
    )
    code, _, errors = program(*join, *authority, *certificate)
    assert code == 3 and "filbert.cluster.tls.key is not set" in errors, errors
    code, _, errors = program(*join, *authority, *certificate, "--member-tls-key", str(tmp_path / "none"))
    assert code == 3 and "cannot read the PEM file" in errors, errors
    stranger = ["--member-tls-authority", str(other["FILBERT_CLUSTER_TLS_AUTHORITY"])]
    code, _, errors = program(*join, *stranger, *certificate, *key)
    assert code == 3 and "cannot be used" in errors, errors
    code, _, errors = program("--listen", "127.0.0.1:0", *authority)
    assert code == 2 and "--member-tls-authority is about a cluster" in errors, errors
