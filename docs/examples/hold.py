"""A scheduler that uses the command of hold.patch, on both devices: they have to print the same."""

import sys

import gpusched_env
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import WAIT, Hold, Launch


class Head:
    """The second tenant is held back for ten microseconds; everything else goes at once."""

    set_up = SetUp(commands=("hold",))

    def reset(self, knowledge, rng):
        self.held = False

    def decide(self, view):
        if not self.held:
            self.held = True
            return Hold(1, view.time_us + 10.0)
        ready = view.pending.id[view.pending.launchable == 1.0]
        return Launch(int(ready[0])) if len(ready) else WAIT


for device in sys.argv[1:] or ("reference", "compiled"):
    kernels = gpusched_env.run_episode("Toy", Head(), device=device).to_frame("kernels")
    print(device, kernels.groupby("tenant")["started_us"].min().to_dict())
