"""The notebooks run, at a small scale, and say what their pages say they find."""

import sys

import docs_pages
import nbformat
import pytest
from nbclient import NotebookClient

from certeq.questions import again, asking

sys.path.insert(0, str(docs_pages.DOCS))
import make_notebooks

SMALL = {"paper_in_15_minutes": {"DATA_SETS": 400}, "clinical_data": {"DRAWS": 40, "PATIENTS": 200, "MONTHS": 30}}


@pytest.fixture(scope="module")
def ran():
    return {script.stem: make_notebooks.run(script, **SMALL[script.stem]) for script in make_notebooks.SCRIPTS}


def values(done, name):
    """The last picture or value of a kind."""
    return [value for _, _, value in done if hasattr(value, name)]


def said(done):
    return "".join(printed for _, printed, _ in done)


def test_every_notebook_has_a_page_and_small_settings():
    assert set(SMALL) == {script.stem for script in make_notebooks.SCRIPTS}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_the_notebook_runs_in_jupyter_and_says_what_the_script_says(ran, name):
    notebook = nbformat.read(docs_pages.DOCS / "notebooks" / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.source for cell in code[1:]] == [cell.text for cell, _, _ in ran[name] if cell.code]
    code[1].source += "".join(f"\n{setting} = {value}" for setting, value in SMALL[name].items())
    code[1].source += "\nfrom certeq.questions import again, asking"
    code[1].source += f"\nasking.DRAWS, again.EACH = {asking.DRAWS}, {again.EACH}"  # as in all tests
    done = NotebookClient(notebook, timeout=None, kernel_name="python3").execute()
    told = [output for cell in done.cells for output in cell.get("outputs", ())]
    assert "".join(each.text for each in told if each.output_type == "stream") == said(ran[name])
    drawn = [each for each in told if "image/png" in each.get("data", ())]
    assert len(drawn) == len(values(ran[name], "savefig"))


@pytest.mark.slow
def test_all_cells_run_and_draw(ran):
    assert len(values(ran["paper_in_15_minutes"], "savefig")) == 1
    assert len(values(ran["clinical_data"], "savefig")) == 4


@pytest.mark.slow
def test_the_walk_through_the_paper_finds_what_it_says(ran):
    words = said(ran["paper_in_15_minutes"])
    assert "difference:     [171.896653 171.896653" in words
    assert "discount       advises to stop\nuniform_blend  advises to go on" in words
    [figure] = values(ran["paper_in_15_minutes"], "savefig")
    few = {line.get_label(): line.get_ydata() for line in figure.axes[0].lines}
    assert min(few["uniform_prior"]) < min(few["discount"])
    assert few["uniform_prior"][5] > few["discount"][5]
    assert few["evidence"][0] < 0.8 * min(few["uniform_prior"])


@pytest.mark.slow
def test_the_trials_policy_helps_new_patients(ran):
    words = said(ran["clinical_data"])
    rows = [line.split() for line in words.splitlines() if "±" in line]
    value = {" ".join(row[:-3]): float(row[-3]) for row in rows}
    assert value.pop("the policy") > 7 > max(value.values())
    assert len(value) == 4
    assert "changes the advice in" in words


def test_a_changed_cell_loses_its_output(tmp_path, monkeypatch):
    script = tmp_path / "one.py"
    script.write_text("# %% [markdown]\n# # One\n\n# %%\nprint(1)\n")
    monkeypatch.setattr(make_notebooks, "PAGES", tmp_path)
    page = make_notebooks._run_page(script)
    (tmp_path / "one.md").write_text(page)
    assert make_notebooks._kept_page(script) == page
    script.write_text("# %% [markdown]\n# # One\n\n# %%\nprint(2)\n")
    assert make_notebooks._kept_page(script) != page
    assert "```text" not in make_notebooks._kept_page(script)
