"""Writes what was trained as the demo model: weights.safetensors in half precision, and config.json."""

import argparse
import json
import os
from pathlib import Path

import torch
from safetensors.torch import save_file


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", required=True, help="folder of the training's state")
    parser.add_argument("--output", required=True, help="folder for the model")
    arguments = parser.parse_args()
    state = torch.load(Path(arguments.state) / "state.pt", map_location="cpu", weights_only=True)
    output = Path(arguments.output)
    output.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.half().contiguous() for name, tensor in state["average"].items()}
    if not all(tensor.isfinite().all() for tensor in weights.values()):
        raise SystemExit("a weight does not fit into half precision")
    save_file(weights, output / "weights.beside")
    os.replace(output / "weights.beside", output / "weights.safetensors")
    text = json.dumps(json.loads(state["config"]), indent=1) + "\n"
    (output / "config.beside").write_text(text)
    os.replace(output / "config.beside", output / "config.json")
    size = (output / "weights.safetensors").stat().st_size
    print(f"{output}: {size / 1e6:.1f} MB after {state['step']} steps")


if __name__ == "__main__":
    main()
