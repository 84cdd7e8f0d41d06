from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from sb3_contrib import MaskablePPO

from gpusched_env import compare
from gpusched_env.agents.model_file import export_policy
from gpusched_env.agents.sb3_vec_env import Sb3VecEnv
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv

torch.set_num_threads(1)  # threads of small networks wait for each other where cores are busy
envs = Sb3VecEnv(GpuSchedulingVectorEnv("ServingPoisson", num_envs=32, autoreset_mode="SAME_STEP"))
model = MaskablePPO("MultiInputPolicy", envs, n_steps=64, batch_size=512, gamma=0.98, seed=0, stats_window_size=10**6)
model.learn(total_timesteps=100_000)
Path("runs").mkdir(exist_ok=True)
export_policy(model, "runs/serving_ppo.npz")

result = compare("ServingPoisson", ["pass-through", "learned:runs/serving_ppo.npz"], seeds=20)
print(result)
costs = [-episode["r"] for episode in model.ep_info_buffer]
plt.plot(np.convolve(costs, np.ones(20) / 20, "valid"), label="MaskablePPO, mean of 20 episodes")
plt.axhline(result.interval("pass-through", "cost").mean, color="grey", label="pass-through")
plt.gca().set(xlabel="training episode", ylabel="cost", ylim=(0, None))
plt.legend()
plt.savefig("runs/learning.png")
