"""An estimator in the manner of scikit-learn, which need not be installed.

It clones, and it works in ``GridSearchCV`` with groups, so that the rows of one patient stay on one side of a split.
Scores are comparable across cuts, so that how finely to cut can be searched as well.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from certeq.base.arrays import Floats, Integers, Rng
from certeq.base.errors import InputError
from certeq.base.fields import default_of, takes, told
from certeq.data.batch import ENDED, Batch
from certeq.data.request import ROLES, Request
from certeq.learning.learned import Learned, learn
from certeq.learning.policy import Policy
from certeq.learning.rules import Rules
from certeq.model.kernel import entries

FLOOR = 1e-3  # share of a guess mixed into predictions, so that one surprise does not make a score infinite


class CertaintyEquivalence:
    """Learn a policy from a table of logged decisions.

    ``fit(X)`` takes anything `certeq.read` takes: a data frame, a dict of columns, a file; or a 2-D array, whose
    columns then go by number. ``predict(X)`` gives the advised action for each row (None where there is no advice), and
    ``score(X)`` how well the regularized model predicts the next values of other rows, comparably across cuts.
    Parameters are those of `certeq.read` and `certeq.learn`; ``settings`` is a dict for the regularizer.
    """

    @takes(Rules, Request)
    def __init__(self, *, limit_bytes: int | None = None, rng: Rng = 0, **said: Any) -> None:
        usual = _usual()
        for name in said:
            if name not in usual:
                raise TypeError(f"CertaintyEquivalence() got an unexpected keyword argument {name!r}")
        for name, value in (usual | said).items():
            setattr(self, name, value)
        self.limit_bytes, self.rng = limit_bytes, rng

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name."""
        return {name: getattr(self, name) for name in _usual()}

    def set_params(self, **parameters: Any) -> CertaintyEquivalence:
        """Set parameters by name."""
        for name, value in parameters.items():
            if name not in _usual():
                raise InputError(f"CertaintyEquivalence has no parameter {name!r}; it has {', '.join(_usual())}.")
            setattr(self, name, value)
        return self

    def fit(self, X: Any, y: Any = None) -> CertaintyEquivalence:
        """Read the rows and learn; ``y`` is ignored, since the rows hold actions and rewards."""
        from certeq.data.reading import read

        chosen = {each.name: getattr(self, each.name) for each in fields(Rules)}
        learned = learn(read(_table(X), self._request(), limit_bytes=self.limit_bytes, rng=self.rng), **chosen)
        self.learned_: Learned = learned
        self.policy_: Policy = learned.policy
        self.counts_ = learned.counts
        self.weight_ = learned.shrinkage.weight
        self.transition_ = learned.model.transition
        self.value_ = learned.plan.values
        self.states_ = learned.policy.state_names
        self.actions_ = learned.policy.action_names
        return self

    def predict(self, X: Any, *, step: Any = None) -> Any:
        """Advised action of each row, by name; None where there is no advice. ``step`` is for plans with a horizon."""
        self._check_fitted()
        return np.array(self.policy_.act(_table(X), step=step), dtype=object)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-density of the next values of other rows under the regularized model; larger is better.

        A value is told by its rank, so that models which cut columns differently, or leave some out, are about the same
        thing: the chance of the next cell is divided by the share of the rows of fit that lie in it, column by column.
        A model that predicts nothing scores 0, however it cuts. A guess is mixed in at weight 0.001; it alone predicts
        a transition with a state or an action that was never seen. An ending is an outcome of its own.
        """
        from certeq.data.reading import UNRELATED, related

        self._check_fitted()
        rows = self.learned_.case.data.rows("A score relates other rows to those of fit")
        s, a, following = related(_table(X), rows, self._request(), limit_bytes=self.limit_bytes)
        seen = (s >= 0) & (a >= 0) & (following != UNRELATED)
        density = np.zeros(len(s))
        size = np.where(following[seen] == ENDED, 1.0, _sizes(rows)[np.maximum(following[seen], 0)])
        density[seen] = self._chances(s[seen], a[seen], following[seen]) / size
        guess = 1.0 if self.counts_.ended is None else 0.5  # that it goes on, or that it ends
        return float(np.log((1 - FLOOR) * density + FLOOR * guess).mean())

    def _chances(self, state: Integers, action: Integers, following: Integers) -> Floats:
        """Chance of each transition under the regularized model, looked up without writing the model out."""
        pairs = self.counts_.n_states, self.counts_.n_actions
        goes_on = np.broadcast_to(self.transition_.mass(), pairs)[state, action]
        chance = entries(self.transition_, state, action, np.maximum(following, 0))
        ends = np.maximum(1 - goes_on, 0)
        if self.counts_.ended is None:  # what a zero target takes away is no prediction that the episode ends
            chance, ends = chance / np.maximum(np.minimum(goes_on, 1), 1e-300), np.zeros_like(ends)
        return np.where(following == ENDED, ends, chance)

    def _request(self) -> Request:
        said = {each.name: getattr(self, each.name) for each in fields(Request)}
        return Request(**said | {role: _column_names(said[role]) for role in ROLES})

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise InputError("This CertaintyEquivalence is not fitted yet: call fit first.")

    def __sklearn_is_fitted__(self) -> bool:
        """Whether fit was called, for scikit-learn."""
        return hasattr(self, "policy_")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn may expect of this estimator."""
        from sklearn.utils import InputTags, Tags, TargetTags

        inputs = InputTags(two_d_array=False, string=True, categorical=True, allow_nan=True)
        return Tags(estimator_type=None, target_tags=TargetTags(required=False), input_tags=inputs, no_validation=True)

    def __repr__(self) -> str:
        usual = _usual()
        said = [f"{k}={v!r}" for k, v in self.get_params().items() if v != usual[k]]
        return f"CertaintyEquivalence({', '.join(said)})"


def _usual() -> dict[str, Any]:
    """All parameters, with what they are when nothing is said."""
    said = {name: default_of(each) for cls in (Rules, Request) for name, (each, _) in told(cls).items()}
    return said | {"limit_bytes": None, "rng": 0}


def _sizes(batch: Batch) -> Floats:
    """How large the cell of each state is on the ranks of the columns, ``(S,)``: shares of rows, multiplied."""
    cells = batch.recipe_or_numbers.cells
    codes = cells[np.concatenate([batch.state, batch.next_state[~batch.ended]])]
    shares = (
        np.bincount(code, minlength=own.max() + 1)[own] / len(code) for code, own in zip(codes.T, cells.T, strict=True)
    )
    return np.asarray(np.prod(list(shares), axis=0))


def _table(X: Any) -> Any:
    """Give the columns of a plain array their numbers as names."""
    if isinstance(X, np.ndarray):
        if X.ndim != 2:
            raise InputError(f"An array of rows needs two dimensions; got {X.ndim}.")
        return {str(i): X[:, i] for i in range(X.shape[1])}
    return X


def _column_names(column: Any) -> Any:
    """Column numbers, where an array was given, are names."""
    if isinstance(column, list | tuple):
        return [_column_names(one) for one in column]
    return str(column) if isinstance(column, int | np.integer) and not isinstance(column, bool) else column
