# SPDX-License-Identifier: BSD-3-Clause
"""Medians, and measuring in turns.

A busy neighbour changes a machine's speed from one second to the next. So the contenders run one
after the other, again and again; a ratio is taken within one turn, where both saw the same
neighbour, and the median of the turns is what counts. Two virtual CPUs may even be near one another in
one second and far apart in the next, which changes figures between them by a factor of four; so what
a bar compares with runs directly beside it.
"""

import statistics


def median(values):
    return statistics.median(values) if values else float("nan")


def ratios_of(a, b):
    """a[i] / b[i] of each turn."""
    return [x / y for x, y in zip(a, b) if y > 0]


def ratio_of(a, b):
    """Median over the turns of a[i] / b[i]."""
    return median(ratios_of(a, b))


def interval(values):
    """[least, most]: a handful of turns allows no narrower statement."""
    return [round(min(values), 4), round(max(values), 4)] if values else [float("nan"), float("nan")]


def pooled(found, part, first):
    """All figures `part` of the contenders whose key begins with `first`."""
    return [value for key, values in found.items()
            if key[0][0] == first and key[1] == part for value in values]


def turns(contenders, count, progress):
    """Runs every contender once a turn.

    contenders: list of (key, function() -> float or dict of floats). A dict's values are filed
    under (key, its key).
    Returns {key: [one value a turn]}.
    """
    results = {}
    for turn in range(count):
        # Every other turn backwards, so that nobody always runs after the same neighbour.
        order = contenders if turn % 2 == 0 else list(reversed(contenders))
        for key, measure in order:
            progress(turn + 1, count, key)
            value = measure()
            if isinstance(value, dict):
                for part, number in value.items():
                    results.setdefault((key, part), []).append(number)
            else:
                results.setdefault(key, []).append(value)
    return results
