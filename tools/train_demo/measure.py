"""Held-out figures of a demo model, streamed through the product: a table in Markdown. Standard library only."""

import argparse
import json
import math
import statistics
import subprocess
import tempfile
from pathlib import Path


def poses(run):
    """Stamp and pose of every frame of a run, as text."""
    lines = (run / "trajectory.tum").read_text().splitlines()
    return [line.split(maxsplit=1) for line in lines if line[:1] not in ("", "#")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", required=True, help="the lingbot_map program")
    parser.add_argument("--model", required=True, help="folder with weights.safetensors and config.json")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5], help="walks; training has 1000 and up")
    parser.add_argument("--frames", type=int, default=300)
    arguments = parser.parse_args()

    def tool(*words):
        return subprocess.run([arguments.tool, *map(str, words)], check=True, capture_output=True, text=True).stdout

    def run(images, output):
        tool("run", "--images", images, "--checkpoint", Path(arguments.model) / "weights.safetensors",
             "--output", output, "--save-predictions", output / "predictions.npz")

    rows = []
    for seed in arguments.seeds:
        with tempfile.TemporaryDirectory() as folder:
            walk, whole, again = (Path(folder) / name for name in ("walk", "whole", "again"))
            tool("world", "--trajectory", seed, "--frames", arguments.frames, "--output", walk)
            run(walk / "rgb", whole)
            figures = json.loads(tool("evaluate", "--predictions", whole / "predictions.npz", "--truth", walk, "--json"))
            path, depth = figures["path"], figures["depth"]
            # A second stream starts in the middle of the walk; the first one's path over the same frames is its truth.
            middle = arguments.frames // 2
            (images := Path(folder) / "images").mkdir()
            for image in sorted((walk / "rgb").iterdir())[middle:]:
                (images / image.name).symlink_to(image)
            run(images, again)
            (old := Path(folder) / "old").mkdir()
            (old / "groundtruth.tum").write_text("".join(
                f"{stamp} {pose}\n" for (stamp, _), (_, pose) in zip(poses(again), poses(whole)[middle:])))
            restart = json.loads(tool("evaluate", "--trajectory", again / "trajectory.tum", "--truth", old, "--json"))
            rows.append((depth["abs_rel"], depth["delta_1_25"], path["ate_rmse_none"], path["ate_rmse_se3"],
                         math.degrees(path["rotation_median_none"]), figures["surface"]["median"],
                         restart["path"]["ate_rmse_se3"], math.degrees(restart["path"]["rotation_median"])))
    print("| walk | AbsRel | δ<1.25 | ATE, not aligned (m) | ATE, SE(3) (m) | rotation, median (°) | surface, median (m) "
          "| restart: ATE, SE(3) (m) | restart: rotation, median (°) |")
    print("|---" * 9 + "|")
    rows.append(tuple(map(statistics.mean, zip(*rows))))
    for name, row in zip((*arguments.seeds, "mean"), rows):
        print(f"| {name} | " + " | ".join(f"{figure:.3f}" for figure in row) + " |")


if __name__ == "__main__":
    main()
