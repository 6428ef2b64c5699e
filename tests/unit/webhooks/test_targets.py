"""The file of targets is the operator's: strict, and its secrets are told nowhere (P3)."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from broker_service.webhooks.targets import CLOSED, OPENED, read_targets
from turngate_serving.exit import StartError

KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()
OTHER = bytes(range(1, 33))
OTHER_SECRET = "whsec_" + base64.b64encode(OTHER).decode()


def written(folder: Path, text: str) -> Path:
    path = folder / "webhooks.toml"
    path.write_text(text)
    return path


def one(**values: str) -> str:
    """A target in TOML; a value is TOML, too, and an empty one leaves its key out."""
    given = {"name": '"ops"', "url": '"https://h.example/x"', "secrets": f'["{SECRET}"]'} | values
    lines = [f"{key} = {value}" for key, value in given.items() if value]
    return "\n".join(["[[target]]", *lines]) + "\n"


def problem(folder: Path, text: str) -> str:
    path = written(folder, text)
    with pytest.raises(StartError) as caught:
        read_targets(path)
    assert SECRET.removeprefix("whsec_") not in str(caught.value)
    return str(caught.value).replace(str(path), "FILE")


def test_a_target_with_three_keys_is_told_everything(tmp_path: Path) -> None:
    (target,) = read_targets(written(tmp_path, one()))
    assert (target.name, target.url, target.secrets) == ("ops", "https://h.example/x", (KEY,))
    assert target.events == {OPENED, CLOSED}
    assert target.tenants is None
    assert SECRET not in repr(target)
    assert "h.example" not in repr(target), "an address may be a secret, too"


def test_secrets_come_from_the_file_from_others_and_from_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths are relative to the file; several secrets sign side by side while one is rotated."""
    (tmp_path / "secret").write_text(OTHER_SECRET.rstrip("=") + "\n")
    monkeypatch.setenv("OPS_SECRET", OTHER_SECRET)
    secrets = f'["{SECRET}", "file:secret", "env:OPS_SECRET"]'
    (target,) = read_targets(written(tmp_path, one(secrets=secrets)))
    assert target.secrets == (KEY, OTHER, OTHER)


def test_a_link_of_the_operator_has_the_ids_in_it(tmp_path: Path) -> None:
    link = '"https://app.example/{tenant_id}/{session_id}?q={interaction_id}"'
    (target,) = read_targets(written(tmp_path, one(link=link)))
    assert target.link_for("t/1", "s 1", "int_1") == "https://app.example/t%2F1/s%201?q=int_1"


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://h.example", True),
        ("http://127.0.0.1:80/x", True),
        ("http://[::1]/x", True),
        ("http://localhost/x", True),
        ("http://h.example", False),
        ("http://10.0.0.1", False),
        ("http://127.0.0.1.example", False),
    ],
)
def test_what_leaves_this_machine_is_encrypted(tmp_path: Path, url: str, allowed: bool) -> None:
    text = one(url=f'"{url}"')
    if allowed:
        read_targets(written(tmp_path, text))
    else:
        assert "url has to be https" in problem(tmp_path, text)
        read_targets(written(tmp_path, one(url=f'"{url}"', allow_http="true")))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"name": '"Ops!"'}, "FILE:2: target[0].name: String should match pattern"),
        ({"name": ""}, "FILE:1: target[0].name: Field required"),
        ({"url": '"ftp://h.example"'}, "FILE:3: target[0].url: has to be an https:// URL"),
        ({"url": '"https://"'}, "FILE:3: target[0].url: has to be an https:// URL"),
        ({"url": '"https://h.example:x/"'}, "FILE:3: target[0].url: is no URL"),
        ({"url": '"https://u:p@h.example"'}, "FILE:3: target[0].url: has to be without a user"),
        ({"url": '"https://h.example/#a"'}, "FILE:3: target[0].url: has to be without a #fragm"),
        ({"url": '"https://h.example/ä"'}, "FILE:3: target[0].url: has to be percent-encoded"),
        ({"url": "5"}, "FILE:3: target[0].url: Input should be a valid string"),
        ({"secrets": "[]"}, "FILE:4: target[0].secrets: List should have at least 1 item"),
        ({"secrets": '["s3cret"]'}, "FILE:4: target[0].secrets[0]: it has to be whsec_"),
        ({"secrets": '["whsec_c2hvcnQ="]'}, "target[0].secrets[0]: it has to be whsec_ and"),
        ({"secrets": '["env:NOT_SET_HERE"]'}, "secrets[0]: the variable NOT_SET_HERE is not set"),
        ({"secrets": '["file:nowhere"]'}, "nowhere: No such file"),
        ({"secrets": "[5]"}, "FILE:4: target[0].secrets[0]: has to be text"),
        ({"events": '["run.failed"]'}, "FILE:5: target[0].events[0]: Input should be"),
        ({"events": "[]"}, "FILE:5: target[0].events: List should have at least 1 item"),
        ({"tenants": "[]"}, "FILE:5: target[0].tenants: List should have at least 1 item"),
        ({"link": '"https://a/{token}"'}, "FILE:5: target[0].link: knows {tenant_id}, {session"),
        ({"allow_http": '"yes"'}, "FILE:5: target[0].allow_http: Input should be a valid boolean"),
        ({"uri": '"x"'}, "FILE:5: target[0].uri: Extra inputs are not permitted"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(
    tmp_path: Path, values: dict[str, str], said: str
) -> None:
    assert said in problem(tmp_path, one(**values))


def test_all_problems_are_told_at_once_each_at_its_target(tmp_path: Path) -> None:
    text = one(name='"a"') + one(name='"b"', url='"x"') + one(name='"c"', secrets='["y"]')
    said = problem(tmp_path, text)
    assert "FILE:7: target[1].url: has to be an https:// URL" in said
    assert "FILE:12: target[2].secrets[0]: it has to be whsec_" in said


def test_a_file_without_targets_or_with_two_of_one_name_is_refused(tmp_path: Path) -> None:
    assert "target: Field required" in problem(tmp_path, "")
    assert "two targets are called ops" in problem(tmp_path, one() + one())
    assert "FILE: targets: Extra inputs" in problem(tmp_path, one() + "[targets]\n").replace(
        "FILE:5", "FILE"
    )


def test_a_file_that_cannot_be_read_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"nowhere\.toml: No such file"):
        read_targets(tmp_path / "nowhere.toml")
    assert "FILE: " in problem(tmp_path, "[[target]")
    path = tmp_path / "webhooks.toml"
    path.write_bytes(b"\xff")
    with pytest.raises(StartError, match="no UTF-8"):
        read_targets(path)
