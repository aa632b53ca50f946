# SPDX-License-Identifier: BSD-3-Clause
"""Medians, and measurement in turns.

Other load on the machine changes its speed from one second to the next. Therefore a turn runs all contenders
once, one after the other, and is repeated. Ratios are computed within a turn, where both sides had similar
load, and the median over the turns counts. Two virtual CPUs may also be close to each other in one second and
far apart in the next, which changes figures by a factor of four. So a contender and its baseline run directly
one after the other.
"""

import statistics


def median(values):
    return statistics.median(values) if values else float("nan")


def ratios_of(a, b):
    """a[i] / b[i] for each turn i."""
    return [x / y for x, y in zip(a, b) if y > 0]


def ratio_of(a, b):
    """Median over the turns of a[i] / b[i]."""
    return median(ratios_of(a, b))


def interval(values):
    """[minimum, maximum]: a few turns do not justify a narrower interval."""
    return [round(min(values), 4), round(max(values), 4)] if values else [float("nan"), float("nan")]


def pooled(found, part, first):
    """The figures `part` of all contenders whose key begins with `first`."""
    return [value for key, values in found.items()
            if key[0][0] == first and key[1] == part for value in values]


def turns(contenders, count, progress):
    """Runs every contender once per turn.

    contenders: list of (key, function() -> float or dict of floats). A dict's values are filed
    under (key, its key).
    Returns {key: [one value a turn]}.
    """
    results = {}
    for turn in range(count):
        # Every other turn runs in reverse, so that no contender always follows the same one.
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
