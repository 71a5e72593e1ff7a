"""The bundled trial from a table to new patients. ``python docs/make_notebooks.py`` makes a page of it."""

# %% [markdown]
# # A clinical data set, end to end
#
# A trial followed 50 patients with a slow-growing brain tumor for 30 months. Each month, chance decided who got the
# drug TMZ, one in four. The question: in which states should it be given? The data are simulated, with a published
# model of tumor growth. That has one advantage: at the end we can treat new patients by the policy, and see.

# %%
import numpy as np
from matplotlib.figure import Figure

import certeq
from certeq.questions.compare import compare
from certeq.worlds import examples
from certeq.worlds.tumor_model import TumorModel

DRAWS = 500
PATIENTS = 1000
MONTHS = 30

# %% [markdown]
# ## Read
#
# Four measurements can make the state. Which of them, and how finely they are cut, is chosen by what predicts best in
# patients that were left out.

# %%
batch = certeq.read(examples.path())
learned = certeq.learn(batch)
for line in (*learned.summary.seen, *learned.summary.alerts):
    print(line)

# %%
certeq.pictures.count_map(learned)  # How often each action was tried in each state; hatched where never

# %% [markdown]
# ## What is advised
#
# The policy is a table. Here are its best-supported lines. `weight` is the share of the regularizer's guess in the
# outcome of the advised action.

# %%
policy = learned.policy
print(" | ".join(policy.recipe.axis_names))
often = np.argsort(-policy.visits.sum(axis=1), kind="stable")
for piece in policy.pieces(often[:8], weight=learned.shrinkage.weight):
    told = f"{piece.advised:4} tried {piece.visits:2} times, weight {piece.weight:.2f}"
    print(" | ".join(piece.words), "->", told)

# %%
certeq.pictures.policy_map(learned)  # What is advised in each state, pale where it was tried fewer than five times

# %% [markdown]
# It gives the drug where there is tumor but little damaged tissue, and waits while the damage that was done does its
# work. Nobody told it that.
#
# ## Why these weights
#
# The default regularizer asks what would best foretell the rows of a pair that has none of its own, and how strong a
# prior around that explains all counts.

# %%
why = learned.shrinkage.details
print(why.words())
print(f"pseudo-observations for each pair: {np.median(why.borrowed.magnitude):.1f}")

# %% [markdown]
# ## Does the method matter?

# %%
which = ["learned_target", "evidence", "none", "discount", "uniform_prior", "least_mse"]
found = compare(learned, regularizers=which, draws=DRAWS)
for line in found.lines():
    print(line)
for entry in found.entries:
    print(f"{entry.name:14} same advice for {found.agreement(entry.name, found.recommended):.0%} of the decisions")

# %% [markdown]
# ## How sure

# %%
findings = certeq.examine(learned, draws=DRAWS)
value = findings.posterior.interval("the advice")
print(f"The policy is worth {value.mean:.0f}, 90% interval {value.low:.0f} to {value.high:.0f}.")
print(f"{len(findings.posterior.undecided())} of {findings.choice.sum()} states with a choice are undecided.")
print(findings.fragility.lines()[0])
print(findings.off_policy.verdict)

# %%
certeq.pictures.value_densities(findings.posterior)  # Posterior of the value of the advice and of what was recorded

# %% [markdown]
# The estimates from the episodes alone cannot be trusted: over 30 months hardly anybody happened to be treated as the
# policy advises all along. So the model carries the weight, and with it the assumption that the measurements say
# all that matters. In a real study we would have to stop here and say so. The report does: `certeq learn` writes it,
# and `certeq.report.learned_page.render(findings)` gives the same page.
#
# ## What a lower discount would have assumed

# %%
audit = certeq.audit(learned, 0.9)
print(f"Planning with .9 invents {audit.ratio:.0f} times as many transitions for the best-known pair as for the least")
differs = len(audit.plan("learned_target").differs)
print(f"known one, and changes the advice in {differs} of {learned.summary.states} states.")

# %% [markdown]
# ## Treat new patients
#
# Now the advantage of a simulation. New patients are treated by the policy, by the policy of someone who looks one
# month ahead, by a coin, never, and always. Where a policy is silent, a coin decides.

# %%
COLUMNS = ("drug_concentration", "proliferative_mm", "quiescent_mm", "damaged_mm")


def follow(choose, patients, months, rng=11):
    """Discounted reward of each new patient under a rule ``(states, random) -> treat``."""
    model, random = TumorModel(**examples.MODEL), np.random.default_rng(rng)
    state, total = model.start(patients, random), np.zeros(patients)
    for month in range(months):
        state, reward = model.step(state, choose(state, random), random)
        total += 0.99**month * reward
    return total


def by(policy):
    """Follow the advice of a policy."""

    def choose(state, random):
        advised = policy.apply(dict(zip(COLUMNS, state.T, strict=True))).action
        coin = random.integers(2, size=len(state))
        return np.where(advised >= 0, advised == policy.action_names.index("TMZ"), coin).astype(int)

    return choose


RULES = {
    "the policy": by(policy),
    "a month ahead": by(certeq.learn(batch, discount=0).policy),
    "a coin": lambda state, random: random.integers(2, size=len(state)),
    "never": lambda state, random: np.zeros(len(state), dtype=int),
    "always": lambda state, random: np.ones(len(state), dtype=int),
}
outcomes = {name: follow(rule, PATIENTS, MONTHS) for name, rule in RULES.items()}
for name, total in outcomes.items():
    half = 1.96 * total.std() / np.sqrt(len(total))
    print(f"{name:13} {total.mean():6.1f} ± {half:.1f}")


# %%
def draw(outcomes):
    """Distribution of what patients earn under each rule."""
    figure = Figure(figsize=(6, 3), layout="constrained")
    axis = figure.subplots()
    for name, total in outcomes.items():
        axis.hist(total, bins=np.linspace(-20, 30, 51), histtype="step", density=True, label=name)
    axis.set(xlabel="discounted reward in 30 months", ylabel="density")
    axis.legend()
    return figure


draw(outcomes)  # Distributions of discounted reward under each rule

# %% [markdown]
# A dose costs 1 when it is given and pays over years. Looking one month ahead therefore means never to treat.
#
# The values here are over 30 months, as long as the trial, and so are those of the posterior above. The plan is for
# ever, but nobody was watched that long, and what the cells leave out adds up: for ever, the model would have it
# worth four times what the advice earns in 300 simulated months. Believe a model for as long as you have watched.
