import socket
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from sqlalchemy.exc import ProgrammingError
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client

from infra.local_stack import DataDirUnusable
from infra.local_stack.ports import is_free
from schemas.settings import Settings
from tests.integration.local_stack.running_stack import all_gone, running_stack, send_and_receive, sql

ONLY_POSTGRES = Settings(temporal_address="elsewhere:7233", kafka_bootstrap="elsewhere:9092")


async def test_all_engines_answer_and_after_the_stop_no_process_socket_or_record_is_left(tmp_path: Path) -> None:
    async with running_stack(tmp_path) as running:
        addresses, pids = running.addresses, list(running.stack.pids().values())
        assert len(pids) == 3
        assert await sql(addresses, "SELECT current_user::text, current_database()::text") == [("perdure", "perdure")]
        assert send_and_receive(addresses, "perdure.test", b"hello") == b"hello"
        assert httpx.get(str(addresses.temporal_ui_url)).status_code == 200
        socket_dir = Path(parse_qs(urlsplit(addresses.database_url).query)["host"][0])
        assert (socket_dir / ".s.PGSQL.5432").is_socket()
    assert all_gone(pids)
    assert not socket_dir.exists()
    ports = [int(address.rsplit(":", 1)[1]) for address in (addresses.temporal_address, addresses.kafka_bootstrap)]
    assert all(is_free(port) for port in ports)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["ports.json"]


async def test_the_next_start_has_the_same_addresses_and_the_data(tmp_path: Path) -> None:
    async with running_stack(tmp_path) as running:
        first = running.addresses
        await sql(first, "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (7)")
    async with running_stack(tmp_path) as running:
        assert running.addresses == first
        assert await sql(first, "SELECT n FROM kept") == [(7,)]


async def test_a_data_dir_with_spaces_signs_and_over_150_characters_works(tmp_path: Path) -> None:
    path = tmp_path / "my documents & 100% 'ours' #1? ü" / ("long " * 20 + "name") / ("x" * 60)
    assert len(str(path)) > 150
    async with running_stack(path) as running:
        assert await sql(running.addresses, "SELECT 1") == [(1,)]
        assert (path / "temporal" / "temporal.db").stat().st_size > 0


async def test_temporal_keeps_closed_runs_30_days_and_knows_the_search_attributes(tmp_path: Path) -> None:
    given = Settings(database_url="postgresql+psycopg://elsewhere/db", kafka_bootstrap="elsewhere:9092")
    async with running_stack(tmp_path, given) as running:
        client = await Client.connect(running.addresses.temporal_address)
        namespace = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))
        assert namespace.config.workflow_execution_retention_ttl.ToTimedelta().days == 30
        known = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace="default"))
        assert {"PerdureTenant", "PerdureWaitingFor"} <= set(known.custom_attributes)


async def test_an_engine_with_an_address_in_the_settings_is_not_started(tmp_path: Path) -> None:
    given = Settings(
        database_url="postgresql+psycopg://db/perdure",
        temporal_address="temporal.internal:7233",
        kafka_bootstrap="kafka.internal:9092",
    )
    async with running_stack(tmp_path, given) as running:
        assert running.stack.pids() == {}
        assert running.addresses.database_url == "postgresql+psycopg://db/perdure"
        assert running.addresses.temporal_address == "temporal.internal:7233"
        assert running.addresses.temporal_ui_url is None
        assert running.addresses.kafka_bootstrap == "kafka.internal:9092"


async def test_text_sorts_by_code_point_and_folds_case_in_every_language(tmp_path: Path) -> None:
    async with running_stack(tmp_path, ONLY_POSTGRES) as running:
        assert await sql(running.addresses, "SELECT lower('ÄÖ'), 'Z' < 'a'") == [("äö", True)]


@pytest.mark.parametrize("part", ["temporal", "kafka"])
async def test_a_port_that_was_taken_in_between_is_left_to_its_new_owner(tmp_path: Path, part: str) -> None:
    given = Settings(
        database_url="postgresql+psycopg://elsewhere/db",
        **{"temporal": {"kafka_bootstrap": "e:1"}, "kafka": {"temporal_address": "e:1"}}[part],
    )
    async with running_stack(tmp_path, given) as running:
        first = running.addresses
    address = first.temporal_address if part == "temporal" else first.kafka_bootstrap
    with socket.create_server(("127.0.0.1", int(address.rsplit(":", 1)[1]))):
        async with running_stack(tmp_path, given) as running:
            assert running.addresses != first
            assert len(running.stack.pids()) == 1


async def test_a_cluster_that_was_cut_off_while_being_made_is_made_anew(tmp_path: Path) -> None:
    half = tmp_path / "postgres.draft" / "base"
    half.mkdir(parents=True)
    (half / "1").write_text("half")
    async with running_stack(tmp_path, ONLY_POSTGRES) as running:
        assert await sql(running.addresses, "SELECT 1") == [(1,)]
    assert not (tmp_path / "postgres.draft").exists()


@pytest.mark.parametrize(("file", "content", "advice"), [("PG_VERSION", "17\n", "dump it"), ("mine", "", "move them")])
async def test_a_directory_that_holds_something_else_is_refused_and_left_as_it_is(
    tmp_path: Path, file: str, content: str, advice: str
) -> None:
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / file).write_text(content)
    with pytest.raises(DataDirUnusable, match=advice):
        async with running_stack(tmp_path, ONLY_POSTGRES):
            pass
    assert [path.name for path in (tmp_path / "postgres").iterdir()] == [file]


async def test_the_role_of_the_application_can_neither_read_files_nor_run_programs(tmp_path: Path) -> None:
    async with running_stack(tmp_path, ONLY_POSTGRES) as running:
        for attempt in ("SELECT pg_read_file('/etc/passwd')", "COPY (SELECT 1) TO PROGRAM 'true'"):
            with pytest.raises(ProgrammingError, match="permission denied"):
                await sql(running.addresses, attempt)
