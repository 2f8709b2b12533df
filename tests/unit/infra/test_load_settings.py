import pytest

from infra.load_settings import BadSettings, load_settings


def test_an_empty_environment_gives_the_embedded_defaults() -> None:
    settings = load_settings({"PATH": "/bin", "HOME": "/"})
    assert settings.database_url is None
    assert settings.chat_model == "extractive"
    assert settings.parsing.workers == 2


def test_top_level_and_section_variables_are_read_with_their_types() -> None:
    settings = load_settings(
        {
            "PERDURE_CHAT_MODEL": "openai-chat:gpt-5",
            "PERDURE_METRICS_PORT": "9102",
            "PERDURE_PARSING__CPU_S": "7.5",
            "PERDURE_PARSING__WORKERS": "4",
            "PERDURE_FETCH__ALLOW_PRIVATE": "true",
        }
    )
    assert settings.chat_model == "openai-chat:gpt-5"
    assert settings.metrics_port == 9102
    assert (settings.parsing.cpu_s, settings.parsing.workers, settings.parsing.wall_s) == (7.5, 4, 300)
    assert settings.fetch.allow_private is True


def test_an_empty_value_counts_as_unset() -> None:
    assert load_settings({"PERDURE_DATABASE_URL": "", "PERDURE_METRICS_PORT": " "}).database_url is None


def test_names_that_belong_to_the_cli_or_to_tests_are_allowed() -> None:
    load_settings(
        {
            "PERDURE_URL": "http://localhost:8700",
            "PERDURE_API_KEY": "key",
            "PERDURE_DATA_DIR": "/data",
            "PERDURE_TEST_ANYTHING": "1",
            "PERDURE_PEERS_CACHE": "/cache",
        }
    )


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("PERDURE_CHATMODEL", "PERDURE_CHAT_MODEL"),
        ("PERDURE_PARSING__WORKER", "PERDURE_PARSING__WORKERS"),
        ("PERDURE_PARSING", "is not a setting"),
        ("PERDURE_ZZZZZZ", "unset it"),
        ("PERDURE_chat_model", "is not a setting"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_one(name: str, advice: str) -> None:
    with pytest.raises(BadSettings, match=advice) as refused:
        load_settings({name: "1"})
    assert name in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PERDURE_PARSING__WORKERS", "0"),
        ("PERDURE_PARSING__WORKERS", "many"),
        ("PERDURE_LOG_LEVEL", "loud"),
        ("PERDURE_METRICS_PORT", "70000"),
        ("PERDURE_DATABASE_URL", "mysql://user:hunter2@host/db"),
        ("PERDURE_KAFKA_BOOTSTRAP", "kafka://hunter2"),
        ("PERDURE_TEMPORAL_ADDRESS", "temporal"),
        ("PERDURE_QDRANT_URL", "qdrant:6333"),
        ("PERDURE_BLOB_URL", "/srv/blobs"),
    ],
)
def test_a_bad_value_is_one_line_that_names_the_variable_and_not_the_value(name: str, value: str) -> None:
    with pytest.raises(BadSettings) as refused:
        load_settings({name: value})
    message = str(refused.value)
    assert name in message
    assert "\n" not in message
    assert "hunter2" not in message
    assert "unset it" in message


def test_several_bad_values_are_counted() -> None:
    with pytest.raises(BadSettings, match="and 1 more"):
        load_settings({"PERDURE_PARSING__WORKERS": "0", "PERDURE_LIMITS__TAGS": "0"})


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_a_database_url_is_read_by_the_driver_we_carry(scheme: str) -> None:
    settings = load_settings({"PERDURE_DATABASE_URL": f"{scheme}://u:p@db:5432/perdure"})
    assert settings.database_url == "postgresql+psycopg://u:p@db:5432/perdure"


def test_secrets_do_not_show_in_a_printed_settings_object() -> None:
    settings = load_settings({"PERDURE_QDRANT_API_KEY": "hunter2"})
    assert settings.qdrant_api_key is not None
    assert settings.qdrant_api_key.get_secret_value() == "hunter2"
    assert "hunter2" not in repr(settings)
