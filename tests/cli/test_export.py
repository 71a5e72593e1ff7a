"""certeq export: a policy in forms that need no certeq, written beside it."""

import json
from pathlib import Path

import pytest

from certeq import Policy

ROWS = "episode,time,ward,action,reward\n" + "".join(
    f"{e},{t},{'AB'[(e + t) % 2]},{'xy'[(e * t) % 2]},{t}\n" for e in range(6) for t in range(6)
)


@pytest.fixture
def policy(certeq, file):
    """A policy that was learned from ROWS."""
    assert certeq("learn", file(ROWS), "--out", "found", "--draws", "0").code == 0
    return "found/policy.json"


def test_every_form_is_written_beside_the_policy_and_kept_unless_force_is_said(certeq, refused, policy):
    for to, name in (("sql", "sql"), ("python", "py"), ("json", "json"), ("html-card", "html")):
        done = certeq("export", policy, "--to", to)
        assert (done.code, done.out) == (0, f"Written: found/policy-{to}.{name}\n")
    space = {}
    exec(Path("found/policy-python.py").read_text(encoding="utf-8"), space)
    assert space["advise"]({"ward": "A"})["action"] == Policy.load(policy).act({"ward": ["A"]})[0]
    assert json.loads(Path("found/policy-json.json").read_text(encoding="utf-8"))["format"] == "certeq-rules"
    assert 'FROM "my"."rows" AS r' not in Path("found/policy-sql.sql").read_text(encoding="utf-8")
    assert "already exists" in refused("export", policy, "--to", "sql")
    assert certeq("export", policy, "--to", "sql", "--table", "my.rows", "--force").code == 0
    assert 'FROM "my"."rows" AS r' in Path("found/policy-sql.sql").read_text(encoding="utf-8")


def test_what_is_wrong_is_one_paragraph(refused, policy):
    assert "There is no policy file nothing.json" in refused("export", "nothing.json", "--to", "sql")
    assert "There is no export to 'fhir-card'" in refused("export", policy, "--to", "fhir-card")
    assert "takes no step" in refused("export", policy, "--to", "json", "--step", "t")
    assert "min_chance" in refused("export", policy, "--to", "json", "--min-chance", "7")
