"""The files of a map, read by others: trimesh for PLY and glTF, evo for paths, NumPy for PCD."""

import os
import pathlib
import subprocess

import numpy as np
import pytest
import trimesh
from evo.tools import file_interface

PROJECT = pathlib.Path(__file__).parents[2]
TOOL = PROJECT / os.environ.get('CARGO_TARGET_DIR', 'target') / 'debug' / 'lingbot_map'
DEMO = PROJECT / 'models' / 'demo'
FRAMES = 12


@pytest.fixture(scope='module')
def saved(tmp_path_factory):
    """A map of the first frames of the demo's walk, in every format."""
    folder = tmp_path_factory.mktemp('map')
    images = folder / 'rgb'
    images.mkdir()
    for image in sorted((DEMO / 'walk' / 'rgb').iterdir())[:FRAMES]:
        (images / image.name).symlink_to(image)
    arguments = ['--images', images, '--checkpoint', DEMO / 'weights.safetensors', '--output', folder]
    arguments += ['--formats', 'pcd,glb,kitti']
    done = subprocess.run([TOOL, 'run', *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope='module')
def cloud(saved):
    """Positions [n, 3] and colours [n, 3] as trimesh reads them from map.ply."""
    points = trimesh.load(saved / 'map.ply')
    assert len(points.vertices) > 1000
    return np.asarray(points.vertices), np.asarray(points.colors)[:, :3]


def read_pcd(path):
    """Name and rows of a binary PCD file's fields, by its own header."""
    head, data = path.read_bytes().split(b'DATA binary\n', 1)
    header = dict(line.split(' ', 1) for line in head.decode().splitlines() if not line.startswith('#'))
    names, sizes, types = (header[key].split() for key in ('FIELDS', 'SIZE', 'TYPE'))
    kinds = {'F': 'f', 'U': 'u', 'I': 'i'}
    dtype = [(name, f'<{kinds[kind]}{size}') for name, size, kind in zip(names, sizes, types)]
    points = np.frombuffer(data, dtype)
    assert len(points) == int(header['POINTS']) == int(header['WIDTH']) * int(header['HEIGHT'])
    return points


def test_pcd_holds_the_points_of_the_ply(saved, cloud):
    positions, colors = cloud
    points = read_pcd(saved / 'map.pcd')
    assert np.array_equal(np.stack([points[axis] for axis in 'xyz'], axis=1), positions.astype(np.float32))
    packed = points['rgb'].view(np.uint32)
    found = np.stack([packed >> 16 & 255, packed >> 8 & 255, packed & 255], axis=1)
    assert np.array_equal(found, colors)
    assert (points['confidence'] >= 1.5).all()


def test_gltf_holds_the_points_and_a_pyramid_for_every_camera(saved, cloud):
    positions, colors = cloud
    scene = trimesh.load(saved / 'map.glb')
    shapes = {type(shape).__name__: shape for shape in scene.geometry.values()}
    points, cameras = shapes['PointCloud'], shapes['Path3D']
    # The axes of glTF: y up, forward -z.
    np.testing.assert_allclose(points.vertices * [1, -1, -1], positions, atol=1e-6)
    # Vertex colours are linear.
    share = colors / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4) * 255
    np.testing.assert_allclose(np.asarray(points.colors)[:, :3], linear, atol=0.51)
    path = file_interface.read_tum_trajectory_file(saved / 'trajectory.tum')
    eyes = path.positions_xyz * [1, -1, -1]
    distances = np.linalg.norm(eyes[:, None] - cameras.vertices[None], axis=2).min(axis=1)
    assert len(eyes) == FRAMES and distances.max() < 1e-6


def test_both_paths_are_the_same(saved):
    timed = file_interface.read_tum_trajectory_file(saved / 'trajectory.tum')
    ordered = file_interface.read_kitti_poses_file(saved / 'trajectory.kitti')
    np.testing.assert_allclose(np.array(ordered.poses_se3), np.array(timed.poses_se3), atol=1e-7)
