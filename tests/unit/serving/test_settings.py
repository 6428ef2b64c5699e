"""Settings by flag, environment and file; errors are one line and say where."""

from pathlib import Path
from typing import ClassVar, Literal

import pytest

from turngate_serving.exit import StartError
from turngate_serving.flags import parse_settings
from turngate_serving.settings import ServingSettings, Settings, TextList, setting, settings_table


class Example(Settings):
    section: ClassVar[str] = "broker"

    listen: str = setting("127.0.0.1:50051", "Where it listens.")
    max_forks: int = setting(64, "Forks a call | at most.", least=1, greatest=100)
    lease: float = setting(5.0, "Lease of a run, 100 % of it.", unit="s", least=0.5, greatest=60)
    runners: TextList = setting((), "Addresses of runners.")
    fast: bool = setting(False, "Whether it is fast.")
    mode: Literal["one", "two"] = setting("one", "One or two.")


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LISTEN", "MAX_FORKS", "LEASE", "RUNNERS", "FAST", "MODE"):
        monkeypatch.delenv(f"TURNGATE_BROKER_{name}", raising=False)
    monkeypatch.delenv("TURNGATE_CONFIG", raising=False)


def parse(*arguments: str) -> Example:
    return parse_settings(Example, arguments, program="broker", description="The broker.")


def refusal(*arguments: str) -> str:
    with pytest.raises(StartError) as caught:
        parse(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "turngate.toml"


def test_without_anything_the_defaults_count() -> None:
    assert parse().model_dump() == {
        "listen": "127.0.0.1:50051",
        "max_forks": 64,
        "lease": 5.0,
        "runners": (),
        "fast": False,
        "mode": "one",
    }


def test_flag_goes_before_variable_before_file_before_default(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text("[broker]\nmax_forks = 2\nlease = 2\nmode = 'two'\n[runner]\nother = 1\n")
    monkeypatch.setenv("TURNGATE_BROKER_MAX_FORKS", "3")
    monkeypatch.setenv("TURNGATE_BROKER_LEASE", "3")
    found = parse("--config", str(config), "--max-forks", "4")
    assert (found.max_forks, found.lease, found.mode, found.listen) == (
        4,
        3.0,
        "two",
        "127.0.0.1:50051",
    )


def test_the_variable_names_the_file_and_the_flag_goes_before_it(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text("broker.max_forks = 2")
    monkeypatch.setenv("TURNGATE_CONFIG", str(config))
    assert parse().max_forks == 2
    other = tmp_path / "other.toml"
    other.write_text("broker.max_forks = 3")
    assert parse("--config", str(other)).max_forks == 3


def test_lists_and_switches_in_all_three_forms(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert parse("--runners", "a:1", "--runners", "b:2", "--fast").runners == ("a:1", "b:2")
    config.write_text("broker.runners = ['a:1', 'b:2']\nbroker.fast = true")
    found = parse("--config", str(config))
    assert (found.runners, found.fast) == (("a:1", "b:2"), True)
    monkeypatch.setenv("TURNGATE_BROKER_RUNNERS", "c:1, d:2")
    monkeypatch.setenv("TURNGATE_BROKER_FAST", "true")
    assert parse().runners == ("c:1", "d:2")
    assert parse("--no-fast").fast is False


def test_an_empty_variable_is_none_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGATE_BROKER_MAX_FORKS", "")
    assert parse().max_forks == 64


def test_variables_of_kubernetes_are_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service `turngate-broker` in the cluster sets them in each of its containers."""
    monkeypatch.setenv("TURNGATE_BROKER_PORT", "tcp://10.0.0.1:50051")
    monkeypatch.setenv("TURNGATE_BROKER_SERVICE_HOST", "10.0.0.1")
    assert parse().listen == "127.0.0.1:50051"


def test_an_unknown_name_in_the_file_is_refused_with_its_line(config: Path) -> None:
    config.write_text("# ours\n[broker]\nlisten = 'x:1'\n\nmax_fork = 3\n")
    assert refusal("--config", str(config)) == (
        f"{config}:5: unknown setting 'max_fork' in [broker]; did you mean 'max_forks'?"
    )


@pytest.mark.parametrize("text", ["[brokr]\n", "brokr.listen = 1\n", '"brokr" = 1\n'])
def test_an_unknown_table_is_refused_with_its_line(config: Path, text: str) -> None:
    config.write_text(f"\n{text}")
    assert refusal("--config", str(config)) == (
        f"{config}:2: unknown table 'brokr'; did you mean 'broker'?"
    )


def test_a_table_that_is_none_is_refused(config: Path) -> None:
    config.write_text("broker = 1\n")
    assert refusal("--config", str(config)) == f"{config}:1: 'broker' has to be a table"


def test_a_file_that_is_no_toml_is_refused_with_its_line(config: Path) -> None:
    config.write_text("[broker]\nlisten = \n")
    assert refusal("--config", str(config)).startswith(f"{config}: Invalid value (at line 2")


def test_a_file_that_is_not_there_is_refused() -> None:
    assert refusal("--config", "nowhere.toml") == (
        "cannot read settings from nowhere.toml: No such file or directory"
    )


@pytest.mark.parametrize(
    ("name", "below", "least", "greatest", "above"),
    [("max-forks", "0", "1", "100", "101"), ("lease", "0.49", "0.5", "60", "60.01")],
)
def test_bounds_are_inclusive(name: str, below: str, least: str, greatest: str, above: str) -> None:
    """E3."""
    parse(f"--{name}", least)
    parse(f"--{name}", greatest)
    assert refusal(f"--{name}", below).startswith(f"flag --{name}: ")
    assert refusal(f"--{name}", above).startswith(f"flag --{name}: ")


@pytest.mark.parametrize("value", ["nan", "inf", "x", ""])
def test_what_is_no_number_is_refused(value: str) -> None:
    assert refusal("--lease", value).startswith("flag --lease: ")


def test_each_value_that_does_not_fit_is_named_with_its_place(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text("[broker]\nmax_forks = 0\n")
    monkeypatch.setenv("TURNGATE_BROKER_LEASE", "0")
    text = refusal("--config", str(config), "--mode", "three")
    assert f"{config}:2: max_forks: " in text
    assert "variable TURNGATE_BROKER_LEASE: " in text
    assert "flag --mode: " in text


@pytest.mark.parametrize("arguments", [["--maxforks", "1"], ["--max", "1"], ["--lease"], ["x"]])
def test_a_wrong_command_line_is_one_line(arguments: list[str]) -> None:
    assert refusal(*arguments).endswith("(see broker --help)")


def test_help_teaches_default_bounds_and_variable(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse("--help")
    assert caught.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "--lease S Lease of a run, 100 % of it. Default 5 s, 0.5 to 60." in text
    assert "[TURNGATE_BROKER_LEASE]" in text
    assert "[TURNGATE_CONFIG]" in text


def test_the_table_has_all() -> None:
    lines = settings_table(Example).splitlines()
    assert lines[0] == "| setting | variable | default | least | greatest | unit | meaning |"
    assert lines[3] == (
        "| `max_forks` | `TURNGATE_BROKER_MAX_FORKS` | `64` | 1 | 100 |  |"
        " Forks a call \\| at most. |"
    )
    assert lines[4] == (
        "| `lease` | `TURNGATE_BROKER_LEASE` | `5` | 0.5 | 60 | s | Lease of a run, 100 % of it. |"
    )
    assert len(lines) == 2 + len(Example.model_fields)


def test_what_every_service_has_is_in_order() -> None:
    class Service(ServingSettings):
        section: ClassVar[str] = "runner"

    found = parse_settings(Service, ["--log-level", "debug"], program="runner", description="")
    assert found.log_level == "debug"
    for line in settings_table(Service).splitlines()[2:]:
        assert "`TURNGATE_RUNNER_" in line
