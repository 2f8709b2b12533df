import random
import socket
from pathlib import Path

from infra.local_stack.ports import RememberedPorts, is_free


def test_a_name_gets_the_same_port_at_the_next_start(tmp_path: Path) -> None:
    file = tmp_path / "ports.json"
    first = RememberedPorts(file, random.Random(1))
    ports = (first.take("temporal"), first.take("kafka"))
    again = RememberedPorts(file, random.Random(2))
    assert (again.take("temporal"), again.take("kafka")) == ports


def test_a_remembered_port_that_somebody_took_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "ports.json"
    port = RememberedPorts(file, random.Random(3)).take("kafka")
    with socket.create_server(("127.0.0.1", port)):
        assert not is_free(port)
        assert RememberedPorts(file, random.Random(4)).take("kafka") != port


def test_two_names_never_share_a_port(tmp_path: Path) -> None:
    ports = RememberedPorts(tmp_path / "ports.json", random.Random(5))
    taken = [ports.take(f"engine-{number}") for number in range(20)]
    assert len(set(taken)) == 20


def test_ports_lie_below_the_range_of_outgoing_connections(tmp_path: Path) -> None:
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = RememberedPorts(tmp_path / "ports.json", random.Random(6))
    assert all(ports.take_another("kafka") < low for _ in range(20))


def test_a_damaged_memory_is_no_obstacle(tmp_path: Path) -> None:
    file = tmp_path / "ports.json"
    file.write_text("{not json")
    assert RememberedPorts(file, random.Random(7)).take("kafka") > 1_024
