"""Random campaigns against the engine: plans, feeds, ends and lives, drawn from seeds that can be replayed.

`python tests/soak --seconds 600` looks for findings, `python tests/soak --seed N` looks at one again.

* `graphs`, `feeds`, `setups`, `cases`: what a case is made of, as plain data drawn from a seed.
* `oracle`: what must come out, by the naive operators of `reference`, which share nothing with the engine.
* `supply`, `taking`, `lives`, `plain`: a graph fed, run and ended, on an engine or without.
* `checks`: what came out of it, held against the oracle.
* `scenes`: lives of engines with something that must hold whatever else happens, a file for each kind.
* `watch`, `leftovers`: hangs, and what is left behind.
* `child`, `campaign`: many cases in processes of their own, so that a hang or a crash has a seed.

In each round of 150 seeds every scene is played. There is one for each kind of bug that was found once, which
is able to find it again.
"""
