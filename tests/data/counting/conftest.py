"""Rows on disk."""

import sys

import numpy as np
import pytest


@pytest.fixture
def parquet(tmp_path):
    """Write a frame as Parquet, in small row groups, as one file or as a folder of some."""

    def write(frame, name="rows.parquet", *, files=None, group=7):
        if files is None:
            frame.write_parquet(tmp_path / name, row_group_size=group)
            return tmp_path / name
        folder = tmp_path / name.removesuffix(".parquet")
        folder.mkdir()
        edges = np.linspace(0, frame.height, files + 1).astype(int)
        for i in range(files):
            part = frame[int(edges[i]) : int(edges[i + 1])]
            part.write_parquet(folder / f"part-{i:03}.parquet", row_group_size=group)
        return folder

    return write


@pytest.fixture
def certeq_main(monkeypatch, capsys):
    """Run the command line, which must succeed; gives what it wrote."""
    from certeq.cli import main

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["certeq", *map(str, words)])
        with pytest.raises(SystemExit) as leaving:
            main()
        assert not leaving.value.code, capsys.readouterr().err
        return capsys.readouterr().out

    return run
