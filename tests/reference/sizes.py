"""How large the large tests are.

`make test` runs everything at the size of CI. `make soak` sets `PENSTOCK_HYPOTHESIS=soak`: fresh examples,
many more of them (`PENSTOCK_EXAMPLES` says how many), and everything else at full size.

`scripts/test-configurations.sh` runs the tests once more for each of several configurations of the engine,
some of them slow by design. It sets `PENSTOCK_SMALLER_TESTS=5`: a fifth of the random examples, and of the
rows of long streams, does there, and they still cross every boundary that a configuration moves.
"""

import os

SMALLER = int(os.environ.get("PENSTOCK_SMALLER_TESTS", "1"))
SOAK = os.environ.get("PENSTOCK_HYPOTHESIS") == "soak"
EXAMPLES = int(os.environ.get("PENSTOCK_EXAMPLES", "1500" if SOAK else "100")) // SMALLER
"""Of each property, unless it says otherwise."""
