"""Cross-entropy method on a classic-control task: a small training program on one core.

    python examples/cem.py --env-id CartPole-v1 --seed 1

Searches the weights of a linear softmax policy: draw many, let each play, keep the best tenth,
draw the next ones around those, with extra noise that fades. Works with Gymnasium environments
that have discrete actions and a flat observation, such as CartPole-v1 and Acrobot-v1.

I. Szita, A. Lőrincz: Learning Tetris Using the Noisy Cross-Entropy Method. Neural Computation
18 (12), 2006.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from types import FrameType

# One run is to take one core, however many the machine has: read when numpy is loaded.
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_threads] = "1"

import gymnasium as gym  # noqa: E402 # see above
import numpy as np  # noqa: E402 # see above
from numpy.typing import NDArray  # noqa: E402 # see above

Weights = NDArray[np.float64]


class Player:
    """Plays episodes with a linear softmax policy, and counts the steps."""

    def __init__(self, env_id: str, seed: int) -> None:
        self.env = gym.make(env_id, disable_env_checker=True)
        space, actions = self.env.observation_space, self.env.action_space
        if not isinstance(actions, gym.spaces.Discrete):
            raise SystemExit(f"cem.py: {env_id} has no discrete actions: try CartPole-v1")
        if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
            raise SystemExit(f"cem.py: {env_id} has no flat observation: try CartPole-v1")
        self.shape = (int(actions.n), space.shape[0] + 1)
        self.first_action = int(actions.start)
        self.rng = np.random.default_rng(seed)
        self.steps = 0

    def episode(self, weights: Weights) -> float:
        """The return of one episode; with all weights zero every action is as likely."""
        policy = weights.reshape(self.shape)
        slopes, offsets = policy[:, :-1], policy[:, -1]
        seen, _ = self.env.reset(seed=int(self.rng.integers(2**31)))
        total, over = 0.0, False
        while not over:
            # The highest score plus Gumbel noise is a draw from the softmax of the scores.
            scores = slopes @ seen + offsets + self.rng.gumbel(size=len(offsets))
            action = self.first_action + int(scores.argmax())
            seen, reward, ended, cut, _ = self.env.step(action)
            total += float(reward)
            over = ended or cut
            self.steps += 1
        return total

    def mean_return(self, weights: Weights, episodes: int) -> float:
        """The mean return of some episodes."""
        return float(np.mean([self.episode(weights) for _ in range(episodes)]))


def train(player: Player, options: argparse.Namespace) -> Weights:
    """The policy at which the search ends."""
    size = player.shape[0] * player.shape[1]
    mean, std = np.zeros(size), np.full(size, options.std)
    elite = max(2, round(options.population * options.elite))
    judge = Player(options.env_id, options.seed + 1_000_000)  # its steps are no training
    started = time.monotonic()
    for iteration in range(options.iterations + 1):
        score = judge.mean_return(mean, 10)
        elapsed = time.monotonic() - started
        print(f"{elapsed:5.1f} s  {player.steps:7d} steps  return {score:7.1f}", flush=True)
        if iteration == options.iterations:
            break
        draws = mean + std * player.rng.standard_normal((options.population, size))
        returns = [player.mean_return(weights, options.episodes) for weights in draws]
        best = draws[np.argsort(returns)[-elite:]]
        fading = options.noise * max(0.0, 1 - iteration / options.iterations)
        mean, std = best.mean(axis=0), np.sqrt(best.var(axis=0) + fading**2)
    return mean


def parse_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Cross-entropy method, on one core.")
    parser.add_argument("--env-id", default="CartPole-v1", help="[%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="[%(default)s]")
    parser.add_argument("--iterations", type=int, default=15, help="of the search [%(default)s]")
    parser.add_argument("--population", type=int, default=40, help="policies each [%(default)s]")
    parser.add_argument("--elite", type=float, default=0.1, help="part kept [%(default)s]")
    parser.add_argument("--episodes", type=int, default=1, help="per policy [%(default)s]")
    parser.add_argument("--std", type=float, default=5.0, help="at the start [%(default)s]")
    parser.add_argument("--noise", type=float, default=3.0, help="that fades [%(default)s]")
    options = parser.parse_args()
    if min(options.iterations, options.population - 1, options.episodes, options.seed + 1) < 1:
        parser.error("--iterations and --episodes start at 1, --population at 2, --seed at 0")
    return options


def stop(_number: int, _frame: FrameType | None) -> None:
    """A spot instance is going, or the run was cancelled: there is nothing worth keeping."""
    print("cem.py: told to stop", file=sys.stderr, flush=True)
    sys.exit(128 + signal.SIGTERM)


def main() -> None:
    """Trains, then measures what was learned."""
    signal.signal(signal.SIGTERM, stop)
    options = parse_options()
    try:
        player = Player(options.env_id, options.seed)
    except gym.error.Error as err:
        sys.exit(f"cem.py: {err}")
    weights = train(player, options)
    final = Player(options.env_id, options.seed + 2_000_000).mean_return(weights, 20)
    # The line that `submit results` reads.
    print("runfleet-metrics", json.dumps({"return": round(final, 1), "steps": player.steps}))


if __name__ == "__main__":
    main()
