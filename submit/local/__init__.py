"""The own machine as a queue: a store, a supervisor that runs what stands in it, and how they meet.

Theory of operation. `submit run --queue local` writes a job into the store (store.py) and wakes
the supervisor (supervisor.py), a process of its own that outlives the terminal. Before a run is
started, a claim to it is written and synced. The run's first deed is to create its attempt file,
which must not exist yet (attempt.sh), its last to write there how its command ended. So:

- a run that has an attempt file was started, whoever did it, and is never started again;
- a run that was claimed and has none was not, if the machine has not been restarted since;
- an end is known although nobody was there to see it.

A supervisor that was killed is started again by the next verb, takes over the runs that still
go on, and reports as lost those that are neither alive nor ended.

Cores and GPUs are taken by locks that end with the attempt (seats.py), so that the supervisors of
several homes and users never give one twice.
"""
