"""The counts of instructions, where Valgrind cannot count or shows another processor."""

from benchmarks import instructions


def test_an_instruction_that_valgrind_does_not_know(tmp_path, monkeypatch, capsys):
    valgrind = tmp_path / "valgrind"
    valgrind.write_text(
        "#!/bin/sh\necho 'vex amd64->IR: unhandled instruction bytes: 0x62 0xF2' >&2\nexit 132\n"
    )
    valgrind.chmod(0o755)
    monkeypatch.setattr(instructions.shutil, "which", lambda name: str(valgrind))
    assert instructions.main([]) == 0
    assert "skipped: this valgrind does not know an instruction" in capsys.readouterr().out


def test_a_processor_without_figures(monkeypatch, capsys):
    monkeypatch.setattr(instructions.shutil, "which", lambda name: name)
    monkeypatch.setattr(instructions, "count", lambda _: ("Python, Nehalem", {"add": 1}))
    assert instructions.main([]) == 0
    assert "no figures for this section" in capsys.readouterr().out
