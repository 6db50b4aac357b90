"""The console script, and `python -m submit`."""

import gc

# Nothing that is imported becomes garbage: it is never searched for any, which takes an eighth of
# the time of a dry run.
gc.disable()
from submit.commands import main  # noqa: E402 # see above

gc.freeze()
gc.enable()

if __name__ == "__main__":
    main()
