"""Trains the demo network; stops and goes on where it was. `python train.py --help`."""

import argparse
import json
import math
import os
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import data
from model import PATCH, SPECIAL, GCTStream, config, fields_of_view

DEPTH_SHARE = 3  # one frame in so many is asked for its depth
ITERATION_WEIGHTS = (0.15, 0.25, 0.5, 1.0)


class Helpers(nn.Module):
    """Linear readouts that only training needs: what each level should know on the way to poses from the first camera.

    Level 0: where in the room the view and its patches are. Level 1: where in the room the first camera is. Levels 2
    and 3: where the view and its patches are from the first camera. Without them the network learns the rotations and
    leaves every position at zero for thousands of steps. Thrown away afterwards."""

    def __init__(self, dim):
        super().__init__()
        self.view = nn.ModuleList(nn.Linear(2 * dim, 12) for _ in range(4))
        self.patch = nn.ModuleList(nn.Linear(2 * dim, 3) for _ in range(4))

    def forward(self, levels):
        views = [readout(level[:, :, 0]) for readout, level in zip(self.view, levels)]
        patches = [readout(level[:, :, SPECIAL:]) for readout, level in zip(self.patch, levels)]
        return views, patches


def truth(batch, field_of_view):
    """Poses from the first camera; what each level should know of a view; what it should know of its patches."""
    room = batch["room_from_camera"]
    rotation, centre = room[..., :3], room[..., 3]
    first = rotation[:, :1].transpose(-1, -2)
    relative = first @ rotation
    moved = (first @ (centre - centre[:, :1])[..., None])[..., 0]
    w = (1 + relative.diagonal(dim1=-2, dim2=-1).sum(-1)).clamp(min=1e-6).sqrt() / 2
    vector = torch.stack((relative[..., 2, 1] - relative[..., 1, 2], relative[..., 0, 2] - relative[..., 2, 0],
                          relative[..., 1, 0] - relative[..., 0, 1]), -1) / (4 * w[..., None])
    fov = field_of_view.expand(*w.shape, 2)
    pose = torch.cat((moved, vector, w[..., None], fov), -1)
    depth = batch["depth"][..., PATCH // 2::PATCH, PATCH // 2::PATCH]
    height, width = batch["depth"].shape[-2:]
    focal = width / 2 / torch.tan(field_of_view[1] / 2)
    v = (torch.arange(PATCH // 2, height, PATCH, device=depth.device) - height / 2) / focal
    u = (torch.arange(PATCH // 2, width, PATCH, device=depth.device) - width / 2) / focal
    v, u = torch.meshgrid(v, u, indexing="ij")
    points = (depth[..., None] * torch.stack((u, v, torch.ones_like(u)), -1)).flatten(2, 3)
    points = points @ rotation.transpose(-1, -2) + centre[..., None, :]
    from_first = (points - centre[:, :1, None]) @ first.transpose(-1, -2)
    room_view = torch.cat((centre, rotation.flatten(-2)), -1)
    gauge_view = torch.cat((moved, relative.flatten(-2)), -1)
    first_view = room_view[:, :1].expand_as(room_view)
    return pose, (room_view, first_view, gauge_view, gauge_view), (points, points, from_first, from_first)


def losses(network, helpers, batch, depth_of, field_of_view):
    pose, known_views, known_patches = truth(batch, field_of_view)
    levels, answers, log_depth, logit = network(
        batch["rgb"], batch["time"], batch["special"], batch["patches"], depth_of)
    weights = torch.tensor([2, 2, 2, 4, 4, 4, 4, 0.5, 0.5], device=pose.device)
    loss = dict(pose=sum(k * ((a - pose).abs() * weights).sum(-1).mean() for k, a in zip(ITERATION_WEIGHTS, answers)))
    views, patches = helpers(levels)
    loss["views"] = sum((a - b).abs().mean() for a, b in zip(views, known_views)) * 4
    loss["patches"] = sum((a - b).abs().mean() for a, b in zip(patches, known_patches)) * 0.5
    error = log_depth - batch["depth"].flatten(0, 1)[depth_of].clamp(min=0.05).log()
    confidence = 1 + logit.clamp(max=6).exp()
    slope = error.diff(dim=-1).abs().mean() + error.diff(dim=-2).abs().mean()
    loss["depth"] = 2 * ((confidence * error.abs() - 0.1 * confidence.log()).mean() + slope)
    with torch.no_grad():
        streamed = slice(data.SCALE_FRAMES, None)
        a, b = F.normalize(answers[-1][:, streamed, 3:7], dim=-1), pose[:, streamed, 3:7]
        angle = 2 * torch.acos((a * b).sum(-1).abs().clamp(max=1))
        figures = dict(
            metres=(answers[-1][:, streamed, :3] - pose[:, streamed, :3]).norm(dim=-1).median(),
            degrees=angle.median() * 180 / math.pi,
            room_metres=(views[0] - known_views[0])[..., :3].norm(dim=-1).median(),
            first_metres=(views[1] - known_views[1])[:, streamed, :3].norm(dim=-1).median(),
            view_metres=(views[3] - known_views[3])[:, streamed, :3].norm(dim=-1).median(),
            patch_metres=(patches[3] - known_patches[3])[:, streamed].norm(dim=-1).median(),
            abs_rel=(error.exp() - 1).abs().mean())
    return loss, figures


def learning_rate(step, steps, decay):
    """Warm up, stay, and fall linearly over the last part, so that a run can be lengthened while it stays."""
    return min(1.0, (step + 1) / 300, max(0.01, (steps - step) / max(1.0, decay * steps)))


def optimisers(network, helpers, rate):
    matrices = [p for n, p in network.named_parameters() if p.ndim == 2 and ("blocks" in n or "trunk" in n) and "norm" not in n]
    chosen = {id(p) for p in matrices}
    rest = [p for p in (*network.parameters(), *helpers.parameters()) if p.requires_grad and id(p) not in chosen]
    return (torch.optim.Muon(matrices, lr=rate, weight_decay=0.03, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(rest, lr=rate, betas=(0.9, 0.98), weight_decay=0.01, fused=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder that `lingbot_map world --format npy` wrote")
    parser.add_argument("--walk-length", type=int, required=True, help="frames of one walk in it")
    parser.add_argument("--output", required=True, help="folder of the training's state and log")
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--decay", type=float, default=0.25, help="the last part, over which the learning rate falls")
    parser.add_argument("--sequences", type=int, default=3, help="of 16 frames, in a step")
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    output = Path(arguments.output)
    output.mkdir(parents=True, exist_ok=True)
    views = data.Views(arguments.data, arguments.walk_length)
    height, width = views.rgb.shape[1:3]
    c = config(height=height, width=width)
    torch.manual_seed(1)
    network, helpers = GCTStream(c).to(device), Helpers(c["embed_dim"]).to(device)
    average = {k: v.detach().clone() for k, v in network.state_dict().items()}
    optimizers = optimisers(network, helpers, arguments.rate)
    field_of_view = torch.tensor(fields_of_view(height, width), device=device)
    print(f"{sum(p.numel() for p in network.parameters()) / 1e6:.2f} M parameters, {len(views.rgb)} views, {device}")

    step = 0
    state_file = output / "state.pt"
    if state_file.exists():
        state = torch.load(state_file, map_location=device, weights_only=True)
        step = state["step"]
        network.load_state_dict(state["network"])
        helpers.load_state_dict(state["helpers"])
        average = state["average"]
        for optimizer, saved in zip(optimizers, state["optimizers"]):
            optimizer.load_state_dict(saved)
        print(f"going on at step {step}")

    def save():
        beside = state_file.with_suffix(".beside")
        torch.save(dict(step=step, config=json.dumps(c), network=network.state_dict(), helpers=helpers.state_dict(),
                        average=average, optimizers=[o.state_dict() for o in optimizers]), beside)
        beside.rename(state_file)

    frames = arguments.sequences * data.FRAMES
    shown, sums = time.time(), {}
    saved = shown
    while step < arguments.steps:
        rng = np.random.default_rng((7, step))
        batch = {k: torch.from_numpy(v).to(device) for k, v in data.batch(views, rng, arguments.sequences).items()}
        depth_of = torch.from_numpy(rng.permutation(frames)[:frames // DEPTH_SHARE]).to(device)
        rate = arguments.rate * learning_rate(step, arguments.steps, arguments.decay)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
        loss, figures = losses(network, helpers, batch, depth_of, field_of_view)
        total = sum(loss.values())
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        total.backward()
        norm = nn.utils.clip_grad_norm_((*network.parameters(), *helpers.parameters()), 5.0)
        if not torch.isfinite(norm):
            raise SystemExit(f"the gradient is not finite at step {step}")
        for optimizer in optimizers:
            optimizer.step()
        keep = min(0.999, (step + 1) / (step + 10))
        with torch.no_grad():
            current = network.state_dict()
            torch._foreach_lerp_(list(average.values()), [current[k] for k in average], 1 - keep)
        step += 1
        for k, v in (*loss.items(), *figures.items()):
            sums[k] = sums.get(k, 0.0) + float(v.detach())
        if step % 50 == 0:
            line = dict(step=step, **{k: round(v / 50, 4) for k, v in sums.items()}, rate=round(rate, 6),
                        frames_a_second=round(50 * frames / (time.time() - shown), 1))
            print(json.dumps(line), flush=True)
            with open(output / "log.jsonl", "a") as log:
                log.write(json.dumps(line) + "\n")
            shown, sums = time.time(), {}
        if time.time() - saved > 120:
            save()
            saved = time.time()
    save()


if __name__ == "__main__":
    main()
