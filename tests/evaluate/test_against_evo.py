"""`lingbot_map evaluate` and evo (Grupp, "evo: Python package for the evaluation of odometry and SLAM") agree.

Both are given the same files, so that reading is compared too. Where definitions leave a choice:
- Times: evo goes through the shorter path and takes the other's pose nearest in time, at most 10 ms away;
  `evaluate` goes through the estimate. The same where the estimate is the shorter one, as here.
- Relative errors over several frames: of every pose and the one so many later (evo's all_pairs), not of consecutive
  pieces of the path only.
- Rotations after an alignment: evo turns them as the positions' alignment does, `evaluate` by the turn that suits the
  rotations best; they are compared unaligned.
"""

import copy
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest
from evo.core import metrics, sync
from evo.tools import file_interface
from scipy.spatial.transform import Rotation

PROJECT = pathlib.Path(__file__).parents[2]
TOOL = PROJECT / os.environ.get('CARGO_TARGET_DIR', 'target') / 'debug' / 'lingbot_map'
TOLERANCE = 1e-6
FRAMES = 80
PERIOD = 0.1
# A time of this century, which a single-precision number would not tell apart from the next frame's.
START = 1_764_000_000.0


def true_path(rng):
    """Positions [n, 3] and rotations of a smooth random walk."""
    velocity = np.cumsum(rng.normal(scale=0.02, size=(FRAMES, 3)), axis=0)
    turns = Rotation.from_rotvec(np.cumsum(rng.normal(scale=0.03, size=(FRAMES, 3)), axis=0))
    return np.cumsum(velocity, axis=0), turns


def noisy(rng, positions, rotations):
    """The path as an estimate would have it: elsewhere, turned, scaled and noisy."""
    turn = Rotation.from_rotvec(rng.normal(size=3))
    moved = turn.apply(positions) * rng.uniform(0.5, 2.0) + rng.normal(size=3)
    wobble = Rotation.from_rotvec(rng.normal(scale=0.05, size=(len(positions), 3)))
    return moved + rng.normal(scale=0.05, size=moved.shape), turn * rotations * wobble


def write_tum(path, stamps, positions, rotations):
    lines = [
        f'{stamp:.9f} ' + ' '.join(f'{value:.17g}' for value in (*position, *quaternion))
        for stamp, position, quaternion in zip(stamps, positions, rotations.as_quat())
    ]
    path.write_text('# timestamp tx ty tz qx qy qz qw\n' + '\n'.join(lines) + '\n')


def write_kitti(path, positions, rotations):
    rows = np.concatenate([rotations.as_matrix(), positions[:, :, None]], axis=2)
    np.savetxt(path, rows.reshape(-1, 12), fmt='%.17g')


def evaluate(truth, estimate, delta):
    arguments = ['evaluate', '--truth', truth, '--trajectory', estimate, '--rpe-delta', delta, '--json']
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)['path']


def statistics(metric, truth, estimate):
    metric.process_data((truth, estimate))
    return metric.get_all_statistics()


def evo_figures(truth, estimate, delta):
    """evo's figures under the names of `evaluate --json`."""
    aligned, scaled = copy.deepcopy(estimate), copy.deepcopy(estimate)
    aligned.align(truth)
    _, _, scale = scaled.align(truth, correct_scale=True)

    def ate(path):
        return statistics(metrics.APE(metrics.PoseRelation.translation_part), truth, path)['rmse']

    def rpe(path, relation):
        metric = metrics.RPE(relation, delta=delta, delta_unit=metrics.Unit.frames, all_pairs=True)
        return statistics(metric, truth, path)['rmse']

    rotation = statistics(metrics.APE(metrics.PoseRelation.rotation_angle_rad), truth, estimate)
    return {
        'frames': truth.num_poses,
        'ate_rmse_none': ate(estimate),
        'ate_rmse_se3': ate(aligned),
        'ate_rmse_sim3': ate(scaled),
        'scale': scale,
        'rpe_delta': delta,
        'rpe_motions': truth.num_poses - delta,
        'rpe_translation_rmse_se3': rpe(aligned, metrics.PoseRelation.translation_part),
        'rpe_translation_rmse_sim3': rpe(scaled, metrics.PoseRelation.translation_part),
        'rpe_rotation_rmse': rpe(estimate, metrics.PoseRelation.rotation_angle_rad),
        'rotation_median_none': rotation['median'],
        'rotation_max_none': rotation['max'],
    }


def assert_same(ours, theirs):
    ours = {name: ours[name] for name in theirs}
    assert ours == pytest.approx(theirs, rel=TOLERANCE)


@pytest.mark.parametrize('delta', [1, 7])
@pytest.mark.parametrize('seed', range(3))
def test_paths_with_times(tmp_path, seed, delta):
    rng = np.random.default_rng(seed)
    positions, rotations = true_path(rng)
    stamps = START + PERIOD * np.arange(FRAMES)
    write_tum(tmp_path / 'truth.tum', stamps, positions, rotations)
    # Some frames are missing, all are a little off in time, and one is so far off that it has no partner.
    kept = np.sort(rng.choice(FRAMES, size=FRAMES - 15, replace=False))
    delays = rng.uniform(-0.009, 0.009, size=len(kept))
    delays[20] = 0.03
    estimate = noisy(rng, positions[kept], rotations[kept])
    write_tum(tmp_path / 'estimate.tum', stamps[kept] + delays, *estimate)

    truth = file_interface.read_tum_trajectory_file(tmp_path / 'truth.tum')
    estimate = file_interface.read_tum_trajectory_file(tmp_path / 'estimate.tum')
    truth, estimate = sync.associate_trajectories(truth, estimate, max_diff=0.01)
    assert truth.num_poses == len(kept) - 1
    ours = evaluate(tmp_path / 'truth.tum', tmp_path / 'estimate.tum', delta)
    assert_same(ours, evo_figures(truth, estimate, delta))


@pytest.mark.parametrize('delta', [1, 7])
@pytest.mark.parametrize('seed', range(3))
def test_paths_without_times(tmp_path, seed, delta):
    rng = np.random.default_rng(100 + seed)
    positions, rotations = true_path(rng)
    write_kitti(tmp_path / 'truth.txt', positions, rotations)
    write_kitti(tmp_path / 'estimate.txt', *noisy(rng, positions, rotations))
    truth = file_interface.read_kitti_poses_file(tmp_path / 'truth.txt')
    estimate = file_interface.read_kitti_poses_file(tmp_path / 'estimate.txt')
    ours = evaluate(tmp_path / 'truth.txt', tmp_path / 'estimate.txt', delta)
    assert_same(ours, evo_figures(truth, estimate, delta))
