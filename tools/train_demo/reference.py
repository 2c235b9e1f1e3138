"""Predictions of the PyTorch network on a walk, streamed with a window: what the product is compared with."""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file

from model import GCTStream


def biases(frames, scale_frames, window):
    """What a stream sees in which every frame is stored: of old frames only the special tokens."""
    special = torch.full((1, frames, frames), -torch.inf)
    patches = special.clone()
    special[:, :, :scale_frames] = patches[:, :, :scale_frames] = 0
    for i in range(scale_frames, frames):
        special[:, i, scale_frames:i + 1] = 0
        patches[:, i, max(scale_frames, i + 1 - window):i + 1] = 0
    return special, patches


def rounded(x):
    """To half precision, which compresses well, in a type that every reader knows."""
    return x.half().float().numpy()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="folder with weights.safetensors and config.json")
    parser.add_argument("--walk", required=True, help="folder with rgb/; reference.npz is written into it")
    parser.add_argument("--every", type=int, default=20, help="frames whose depth is kept")
    arguments = parser.parse_args()
    config = json.loads((Path(arguments.model) / "config.json").read_text())
    network = GCTStream(config).eval()
    weights = load_file(Path(arguments.model) / "weights.safetensors")
    network.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    walk = Path(arguments.walk)
    images = torch.from_numpy(np.stack([np.array(Image.open(path)) for path in sorted((walk / "rgb").iterdir())]))
    frames = len(images)
    kept = torch.arange(0, frames, arguments.every)
    with torch.no_grad():
        special, patches = biases(frames, config["scale_frames"], config["window"])
        time = torch.arange(frames, dtype=torch.float32)[None]
        _, poses, log_depth, logit = network(images[None], time, special, patches, kept)
    np.savez_compressed(
        walk / "reference.npz", depth_frames=kept.numpy(), pose_enc=poses[-1][0].numpy(), depth=rounded(log_depth.exp()),
        depth_conf=rounded(1 + logit.exp()))


if __name__ == "__main__":
    main()
