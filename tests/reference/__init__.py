"""A naive reference of the engine, one row and one Python value at a time.

It is written from the documented semantics and shares no code with the engine. Whatever can be said slowly
and obviously is said that way: this is the thing the engine is judged by.

- `types` says which types there are, `expressions` gives an expression its type and its value in a row,
- `plans` describes a pipeline and runs it over rows in arrival order,
- `engine` builds the same pipeline with `penstock` and runs it there,
- `compare` says whether two answers are the same,
- `strategies` draws random streams, expressions and plans.

Temporal values are plain integers in the unit of their column, so that the whole range can be tested.
"""
