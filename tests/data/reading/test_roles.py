import pytest

from certeq.base.errors import InputError
from certeq.data.reading.roles import Roles, find_roles


def roles(names, layout="auto", **told):
    return find_roles(names.split(","), told, layout)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("state,action,reward,next_state", Roles(("state",), ("next_state",), ("action",), "reward")),
        ("S,A,R,S'", Roles(("S",), ("S'",), ("A",), "R")),
        ("s,a,r,s_prime,done", Roles(("s",), ("s_prime",), ("a",), "r", done="done")),
        (
            "obs,act,rew,next_obs,terminated,truncated",
            Roles(("obs",), ("next_obs",), ("act",), "rew", done="terminated", truncated="truncated"),
        ),
        (
            "Patient ID,Month,State,Treatment,Outcome",
            Roles(("State",), (), ("Treatment",), "Outcome", "Patient ID", "Month"),
        ),
        (
            "patient,month,state,treatment,reward,censored",
            Roles(("state",), (), ("treatment",), "reward", "patient", "month", truncated="censored"),
        ),
        (
            "icustay_id,bloc,age,sofa,action,reward,died",
            Roles(("age", "sofa"), (), ("action",), "reward", "icustay_id", "bloc", "died"),
        ),
        ("age,bp,arm,score,next_age,bp_next", Roles(("age", "bp"), ("next_age", "bp_next"), ("arm",), "score")),
        (
            "obs_0,obs_1,step,episode,action,reward,extra",
            Roles(("obs_0", "obs_1"), (), ("action",), "reward", "episode", "step"),
        ),
        (
            "obs_0,obs_1,action,reward,next_obs_0,next_obs_1",
            Roles(("obs_0", "obs_1"), ("next_obs_0", "next_obs_1"), ("action",), "reward"),
        ),
        ("from_state,to_state,decision,payoff", Roles(("from_state",), ("to_state",), ("decision",), "payoff")),
        ("subject,patient,t,x,a,r,next_action", Roles(("x",), (), ("a",), "r", "patient", "t")),
        ("mrn,week,x,a,benefit", Roles(("x",), (), ("a",), "benefit", "mrn", "week")),
        ("PtNo,visit,x,drug,utility", Roles(("x",), (), ("drug",), "utility", "PtNo", "visit")),
        ("pt_id,t,x,a,r", Roles(("x",), (), ("a",), "r", "pt_id", "t")),
        ("pt,t,x,a,r", Roles(("x",), (), ("a",), "r", "pt", "t")),
        (",id,t,x,a,r", Roles(("x",), (), ("a",), "r", "id", "t")),
    ],
)
def test_common_spellings_are_understood(names, expected):
    found = roles(names)
    assert found.notes
    assert Roles(**{**vars(found), "notes": (), "rest": False}) == expected


def test_every_guess_is_said_aloud_and_so_is_what_is_not_used():
    found = roles("patient,month,state,treatment,reward,comment")
    assert found.notes == (
        "I read 'state' as the state, 'treatment' as the action, 'reward' as the reward, 'patient' as the episode, "
        "'month' as the time.",
        "Not used: comment.",
    )
    told = roles("p,m,s,a,r", state="s", action="a", reward="r", episode="p", time="m", done=False, truncated=False)
    assert told.notes == ()


def test_every_guess_can_be_overridden():
    names = "state,action,reward,next_state,patient,month,done,censored,other,next_other,x"
    assert roles(names, state="other").next_state == ("next_other",)
    assert roles(names, state="x", next_state="other").next_state == ("other",)
    assert roles(names, next_state="next_other").state == ("other",)
    assert roles(names, state=["x", "other"], next_state=False).next_state == ()
    assert roles(names, layout="long").next_state == ()
    assert roles(names, layout="long").state == ("state",)
    assert roles(names, action=["x", "action"]).action == ("x", "action")
    assert roles(names, reward=False).reward is None
    assert roles(names, done=False, truncated="none", episode=False).done is None
    assert roles(names, truncated="none").truncated is None
    assert roles(names, episode="other").episode == "other"
    assert roles(names, state=["x", "month"], time="month", next_state=False).time == "month"


def test_partners_are_matched_by_name_whatever_their_order():
    found = roles("x,y,a,r,y_next,x_next", state=["y", "x"], next_state=["x_next", "y_next"])
    assert found.next_state == ("y_next", "x_next")
    assert roles("x,y,a,r,u,v", state=["y", "x"], next_state=["u", "v"]).next_state == ("u", "v")


def test_in_the_long_form_all_other_columns_are_the_state_and_doubtful_ones_are_mentioned():
    found = roles("patient,month,age,dose,treatment,reward,unit price")
    assert found.state == ("age", "dose", "unit price")
    assert any("'dose' may also be the action" in note for note in found.notes)


@pytest.mark.parametrize(
    ("names", "told", "words"),
    [
        ("state,reward,next_state", {}, r"which column is the action\. Say it with action= \(--action"),
        (
            "state,action,next_state",
            {},
            r"which column is the reward\. Say it with reward= .*reward=False.*--reward-table",
        ),
        ("state,action,reward", {}, "which rows follow one another.*next_state=, episode= or time="),
        ("action,reward,next_state", {}, "which column is the state"),
        ("action,reward,patient", {}, "which column is the state"),
        ("state,action,reward,patient", {"layout": "explicit"}, "which column is the next state.*--next-state"),
        (
            "state,action,reward,nxt",
            {"next_state": "next"},
            "no column 'next' to be the next state.*mean 'nxt'.*are: state",
        ),
        ("state,action,reward", {"episode": "patient"}, "no column 'patient' to be the episode"),
        ("x,next_x,y,action,reward", {"state": ["x", "y"]}, "'y' has no next state beside it, but 'x' has"),
        (
            "x,y,action,reward,z",
            {"state": ["x", "y"], "next_state": "z"},
            "2 state columns .* and 1 next-state columns",
        ),
        ("x,y,action,reward,z", {"reward": ["x", "y"]}, "reward is one column; got 2"),
        ("x,0,action,z", {"reward": 0}, "reward must be the name of a column, as text; got 0. Did you mean '0'"),
        ("x,y,action,z", {"reward": True}, "reward must be the name of a column, as text; got True"),
        ("x,y,action,z", {"reward": 1.5}, "reward must be the name of a column"),
        ("x,y,action,z", {"reward": b"x"}, "reward must be the name of a column"),
        ("x,y,action,z", {"state": ["x", 1]}, "state must be the name of a column, or several, as text; got 1"),
        ("x,y,action,z", {"state": [["x"]]}, "state must be the name of a column, or several"),
    ],
)
def test_what_cannot_be_told_is_asked_for(names, told, words):
    with pytest.raises(InputError, match=words):
        roles(names, **told)


def test_one_episode_in_order_needs_to_be_said():
    assert roles("state,action,reward", layout="long").state == ("state",)
    assert roles("state,action,reward,time").episode is None


@pytest.mark.parametrize("time", ["day", "date", "week", "hour", "visit", "timestamp", "days"])
def test_steps_and_amounts_of_time_are_not_taken_for_the_time_beside_another_word_for_it(time):
    for other in {"steps", "minutes"} - {time}:
        found = roles(f"user,{other},{time},mood,action,reward")
        assert found.time == time
        assert found.state == (other, "mood")


def test_whether_steps_alone_are_the_time_is_asked():
    names = "user,steps,mood,action,reward"
    with pytest.raises(InputError, match=r"'steps' is the time or a number of steps.*--time steps\).*--time none\)"):
        roles(names)
    assert roles(names, time="steps").time == "steps"
    assert roles(names, time=False).state == ("steps", "mood")
    assert roles(names, state=["steps", "mood"]).time is None
    assert roles("state,steps,action,reward,next_state").time is None
