"""How large the large tests are.

`scripts/test-configurations.sh` runs the tests once more for each of several configurations of the engine,
some of them slow by design. It sets `PENSTOCK_SMALLER_TESTS=5`: a fifth of the random examples, and of the
rows of long streams, does there, and they still cross every boundary that a configuration moves.
"""

import os

SMALLER = int(os.environ.get("PENSTOCK_SMALLER_TESTS", "1"))
