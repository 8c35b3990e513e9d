"""Random campaigns against the engine: plans, feeds, ends and lives, drawn from seeds that can be replayed.

`python tests/soak --seconds 600` looks for findings, `python tests/soak --seed N` looks at one again.

* `graphs`, `feeds`, `setups`: what a case is made of, as plain data drawn from a seed.
* `oracle`: what must come out, by the naive operators of `reference`, which share nothing with the engine.
* `cases`: a graph on an engine, held against the oracle, whichever way it ends.
* `scenes`: lives of engines with something that must hold whatever else happens.
* `watch`, `leftovers`: hangs, and what is left behind.
* `child`, `campaign`: many cases in processes of their own, so that a hang or a crash has a seed.
"""
