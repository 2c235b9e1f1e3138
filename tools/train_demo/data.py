"""Views of the room, and sequences of them as a stream would meet them.

A sequence is a few scale frames from one place, then groups of neighbouring frames from anywhere. What a frame may
attend to is what the cache of a stream would hold: the scale frames and the last frames of its own group in full, and
of everything older only the special tokens, as many times over as a real stream would have stored.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

SCALE_FRAMES = 4
WINDOW = 8
# Sizes of the groups after the scale frames; every layout has as many frames, so that shapes never change.
LAYOUTS = ((3, 3, 3, 3), (3, 3, 3, 3), (1, 1, 1, 9))
FRAMES = SCALE_FRAMES + sum(LAYOUTS[0])
# No view is turned further than this from the first: the sign of a quaternion has to jump at 180 degrees.
MOST_TURN = np.radians(165)


class Views:
    """Frames in walks of `length`, as `lingbot_map world --format npy` writes them."""

    def __init__(self, folder, length):
        folder = Path(folder)
        self.rgb = np.load(folder / "rgb.npy", mmap_mode="r")
        self.depth = np.load(folder / "depth.npy", mmap_mode="r")
        self.room_from_camera = np.load(folder / "room_from_camera.npy")
        self.length = length
        self.walks = len(self.rgb) // length

    def turn(self, a, b):
        """Angle between two views, radians."""
        trace = np.sum(self.room_from_camera[a, :, :3] * self.room_from_camera[b, :, :3], (-2, -1))
        return np.arccos(np.clip((trace - 1) / 2, -1, 1))


@dataclass
class Sequence:
    frames: np.ndarray  # [F] indices of views
    time: np.ndarray  # [F] RoPE index: frames stored before
    special: np.ndarray  # [F, F] bias on the attention of a frame (row) to another's special tokens
    patches: np.ndarray  # [F, F] the same, to its patches


def run(views, rng, count, near=None):
    """`count` neighbouring frames of one walk, one to four apart; with `near`, all in reach of that view's gauge."""
    while True:
        gap = rng.choice(4, p=(0.4, 0.25, 0.2, 0.15)) + 1
        start = rng.integers(views.length - gap * (count - 1))
        frames = rng.integers(views.walks) * views.length + start + gap * np.arange(count)
        if near is None or np.all(views.turn(frames, near) < MOST_TURN):
            return frames


def sample(views, rng):
    layout = LAYOUTS[rng.integers(len(LAYOUTS))]
    frames = np.empty(FRAMES, np.int64)
    time = np.empty(FRAMES, np.float32)
    special = np.full((FRAMES, FRAMES), -np.inf, np.float32)
    patches = special.copy()
    frames[:SCALE_FRAMES] = run(views, rng, SCALE_FRAMES)
    time[:SCALE_FRAMES] = np.arange(SCALE_FRAMES)
    special[:, :SCALE_FRAMES] = patches[:, :SCALE_FRAMES] = 0
    at, now = SCALE_FRAMES, SCALE_FRAMES
    for count in layout:
        past = at - SCALE_FRAMES
        if past or rng.random() < 0.3:
            now += int(np.exp(rng.uniform(0, np.log(250)))) - 1
        frames[at:at + count] = run(views, rng, count, frames[0])
        time[at:at + count] = now + np.arange(count)
        if past:
            # The few frames of the past stand for all that a stream would have stored by now.
            special[at:at + count, SCALE_FRAMES:at] = np.log(max(now - SCALE_FRAMES, past) / past)
        for i in range(at, at + count):
            special[i, at:i + 1] = 0
            patches[i, max(at, i + 1 - WINDOW):i + 1] = 0
        at, now = at + count, now + count
    return Sequence(frames, time, special, patches)


def batch(views, rng, sequences):
    """The inputs of so many sequences, stacked; a dictionary of arrays."""
    made = [sample(views, rng) for _ in range(sequences)]
    frames = np.stack([s.frames for s in made])
    order = np.sort(frames.ravel())
    back = np.searchsorted(order, frames)  # read in the order of the file
    return dict(
        rgb=views.rgb[order][back],
        depth=views.depth[order][back].astype(np.float32) / 1000,
        room_from_camera=views.room_from_camera[frames],
        time=np.stack([s.time for s in made]),
        special=np.stack([s.special for s in made]),
        patches=np.stack([s.patches for s in made]),
    )
