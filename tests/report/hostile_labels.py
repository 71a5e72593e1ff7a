"""Labels that would like to be more than labels."""

import certeq

HOSTILE = {
    "script": "<script>window.hacked = 1</script>",
    "closing": "</script><img src=x onerror=alert(1)>",
    "quote": "\"'><b onmouseover=alert(1)>",
    "markup": "[/bold] [red]",
    "math": r"$\frac$ \textbf{x} $",
    "formula": "=1+1",
    "template": "{{ 7 * 7 }} {% raw %}",
    "reversed": "\u202eabc\u202c \u2067x",
    "hebrew": "שלום",
    "entity": "&lt;b&gt; &amp;",
    "long": "y" * 10_000,
}


def learn_hostile(labels, column):
    """Learn from a table whose states, actions and column have hostile labels."""
    rows = range(20 * len(labels))
    table = {
        "patient": [t // 10 for t in rows],
        "month": [t % 10 for t in rows],
        column: [labels[(7 * t + t // 11) % len(labels)] for t in rows],
        "action": [labels[t % 3 % len(labels)] if t % 2 else "other" for t in rows],
        "reward": [float(t % 5) for t in rows],
    }
    return certeq.learn(certeq.read(table, state=[column]))
