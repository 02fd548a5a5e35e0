"""Statistics: from trials to effects, intervals and verdicts. Pure: no clock, no disk, no randomness.

Read the modules in this order::

    sample          observations of trials  ->  units (one log ratio per round)
    interval        units                   ->  an interval and an e-value that stay valid under repeated
    looks
    effect          units                   ->  an effect: ratio, interval, warnings
    proportion      counts of requests      ->  the difference of two success rates, with its interval
    level           one side's rounds       ->  that side's value with its interval
    compare         effects                 ->  verdicts, corrected for the number of comparisons; when to
    stop
    bursts          delays of cycles        ->  which cycles other programs disturbed
    power           variance and a budget   ->  how many rounds, blocks and cycles; the interval width to
    expect
    noise           A/A units               ->  the noise floor
    lengths         short and long slices   ->  whether the slice length changes the effect
    crossover       effects over a factor   ->  where the best variant changes
    load.knee       levels of a load        ->  where a system saturates, and up to where it meets an
    objective
    load.scalability  levels of a load      ->  contention and coherency
    load.generator  totals of a load        ->  whether the load generator was the limit
    load.stall      stalled answers         ->  whether the server waited for a TCP acknowledgement
    growth          times by size           ->  how a time grows, and a prediction for much larger sizes
    ab_switching    slices with and without an observer  ->  what the observer costs
    steady          values of equal times   ->  whether a series is steady, and from when
    steps           metrics of many runs    ->  change points
    run_comparison  runs at different times ->  how much comparable runs differ, and what two runs can show
    gates           effects or past runs    ->  whether each gate of a guard is kept or broken
    student         Student's t distribution, for results that are looked at once

``docs/concepts/methods.md`` describes the methods, ``docs/concepts/verdicts.md`` their limits.
``docs/concepts/error-rates.md`` has the error rates, which ``tests/calibration`` measures.
"""
