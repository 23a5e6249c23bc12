from __future__ import annotations

import builtins
import sys

import pytest

from prefix_cache_exporter import cli


def test_pack_writes_and_then_has_nothing_to_write(tmp_path, capsys):
    assert cli.run(["pack", "--out", str(tmp_path)]) == 0
    assert str(tmp_path / "alerts/engine-records.rules.yaml") in capsys.readouterr().out.splitlines()
    assert cli.run(["pack", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == ""
    assert cli.run(["pack", "--out", str(tmp_path), "--check"]) == 0


def test_pack_check_shows_what_a_pack_file_would_change(tmp_path, capsys):
    cli.run(["pack", "--out", str(tmp_path)])
    pack = tmp_path / "pack.yaml"
    pack.write_text("thresholds: {coverage: 0.5}\n")
    capsys.readouterr()
    assert cli.run(["pack", "--file", str(pack), "--out", str(tmp_path), "--check"]) == 1
    assert "< 0.5)" in capsys.readouterr().out


def test_pack_says_which_file_is_unknown(tmp_path, capsys):
    (tmp_path / "alerts").mkdir()
    (tmp_path / "alerts/old.rules.yaml").write_text("groups: []\n")
    assert cli.run(["pack", "--out", str(tmp_path)]) == 1
    assert "old.rules.yaml: file: got an unknown file" in capsys.readouterr().err


def test_check_pack(tmp_path, capsys):
    pack = tmp_path / "pack.yaml"
    pack.write_text("windows: {short: 10m}\n")
    assert cli.run(["check", "pack", str(pack)]) == 0
    assert capsys.readouterr().out.startswith(f"{pack}: ok, ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("windows: {shrot: 5m}\n", "windows: got the unknown key shrot"),
        ("alerts: {PrefixCacheNone: {}}\n", 'alerts: got "PrefixCacheNone", expected one of "PrefixCache'),
        ("selector: 'cluster=\"eu'\n", 'selector: got "cluster=\\"eu", expected label matchers'),
        ("selector: 'cluster=~\"(\"'\n", "expected what Prometheus can read (illegal regex"),
    ],
)
def test_check_pack_says_what_is_wrong(tmp_path, capsys, text, expected):
    pack = tmp_path / "pack.yaml"
    pack.write_text(text)
    assert cli.run(["check", "pack", str(pack)]) == 1
    assert expected in capsys.readouterr().err


def test_check_pack_without_the_parser_says_so(tmp_path, capsys, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "promql_parser" or name.endswith("pack.lint"):
            raise ModuleNotFoundError(name=name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    pack = tmp_path / "pack.yaml"
    pack.write_text("{}\n")
    assert cli.run(["check", "pack", str(pack)]) == 0
    assert "expressions not parsed: install prefix-cache-exporter[pack]" in capsys.readouterr().out


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, capsys):
    (tmp_path / "alerts").write_text("in the way")
    assert cli.run(["pack", "--out", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert err == f"error: {tmp_path}/alerts: file: got file exists, expected a folder that can be written\n"


@pytest.mark.parametrize("command", [["pack", "--out"], ["check", "pack"]])
def test_without_what_dashboards_are_written_with_it_says_what_to_install(command, tmp_path, capsys, monkeypatch):
    """The sidecar's own installation has no grafanalib."""
    for name in [name for name in sys.modules if name.startswith("prefix_cache_exporter.pack.dashboards")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "grafanalib", None)
    pack = tmp_path / "pack.yaml"
    pack.write_text("{}\n")
    assert cli.run([*command, str(tmp_path if "--out" in command else pack)]) == 1
    err = capsys.readouterr().err
    assert err == "error: pack: got no package grafanalib, expected pip install 'prefix-cache-exporter[pack]'\n"
