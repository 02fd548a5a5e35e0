"""The judge: from trials to effects, intervals and verdicts. Pure: no clock, no disk, no randomness.

Read in this order::

    sample      observations of trials  ->  units (one log ratio a round)
    interval    units                   ->  an interval and an e-value that stay valid under looks
    effect      units                   ->  an effect: ratio, interval, doubts
    compare     effects                 ->  judgements, corrected for their number; when to stop
    bursts      delays of cycles        ->  which cycles other programs disturbed
    power       scatter and a budget    ->  how many rounds, blocks and cycles; the width to expect
    noise       A/A units               ->  the noise floor
    crossover   effects over a factor   ->  where the best variant changes
    knee        levels of a load        ->  where a system bends, and whether it holds an objective
    scalability levels of a load        ->  contention and coherency
    growth      times by size           ->  how a time grows, and what to expect far beyond
    stall       silences of answers     ->  whether the server waited for an acknowledgement
    steps       figures of many runs    ->  where they moved to another level
    student     Student's t distribution, for what is looked at once
    between     runs at different times ->  how far comparable runs differ, and what may be said of two

The method, its error rates and its limits are in ``docs/concepts/statistics.md``; ``tests/calibration``
measures them.
"""
