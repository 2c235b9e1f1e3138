"""The walk through the computed room as a camera: its beat, its calibration, its truth and its faults."""

import json
import math
import os
import pathlib
import subprocess
import time

import numpy as np
import pytest
import yaml
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy, qos_profile_sensor_data
from sensor_msgs.msg import CameraInfo, Image

from mapping_process import EXECUTABLE
from observer import nanoseconds

WORLD_CAMERA = pathlib.Path(os.environ.get('WORLD_CAMERA', EXECUTABLE.with_name('world_camera')))
NODE = '/world_camera'


class Listener:
    """Keeps what the camera sends, with the time of each image's arrival."""

    def __init__(self, observer, depth=False):
        self.observer = observer
        self.received = {'image': [], 'info': [], 'pose': [], 'path': [], 'depth': []}
        self.arrivals = []
        every = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
        latched = QoSProfile(
            depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
        )
        topics = [
            ('info', CameraInfo, '/walk/camera_info', qos_profile_sensor_data),
            ('pose', PoseStamped, f'{NODE}/truth/pose', every),
            ('path', Path, f'{NODE}/truth/path', latched),
        ]
        if depth:
            topics.append(('depth', Image, f'{NODE}/truth/depth', every))
        topics.append(('image', Image, '/walk/image', qos_profile_sensor_data))
        self.subscriptions = [
            observer.node.create_subscription(kind, topic, lambda message, name=name: self.keep(name, message), qos)
            for name, kind, topic, qos in topics
        ]

    def keep(self, name, message):
        self.received[name].append(message)
        if name == 'image':
            self.arrivals.append(time.monotonic())

    def __getitem__(self, name):
        return self.received[name]

    def close(self):
        for subscription in self.subscriptions:
            self.observer.node.destroy_subscription(subscription)


@pytest.fixture
def walk(observer, tmp_path):
    """Lets the camera walk to its end: walk('--frames', 20, ..., depth=True) gives the listener and what was printed."""

    def run(*arguments, depth=False):
        listener = Listener(observer, depth)
        with (tmp_path / 'camera.log').open('wb') as log:
            command = [WORLD_CAMERA, '--topic', '/walk/image', *map(str, arguments)]
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            assert observer.wait_until(lambda: process.poll() is not None, 60)
        finally:
            if process.poll() is None:
                process.stop()
                process.wait()
        observer.spin(0.3)
        listener.close()
        printed = (tmp_path / 'camera.log').read_text(errors='replace')
        assert process.returncode == 0, printed
        lines = (line.rsplit(maxsplit=1) for line in printed.splitlines() if line.strip().startswith('camera: '))
        return listener, {key.strip(): float(value) for key, value in lines}

    return run


def pixels(image):
    return np.frombuffer(bytes(image.data), np.uint8).reshape(image.height, image.width, -1)


def numbers(pose):
    position, rotation = pose.position, pose.orientation
    return [position.x, position.y, position.z, rotation.x, rotation.y, rotation.z, rotation.w]


def test_the_beat_is_steady_and_the_truth_agrees_with_its_folder(walk, tmp_path):
    folder = tmp_path / 'truth'
    listener, figures = walk('--frames', 30, '--rate', 20, '--fov', 90, '--seed', 3, '--truth', folder, depth=True)
    images = listener['image']
    assert figures['camera: images sent'] == 30 and len(images) >= 28
    stamps = [nanoseconds(image.header.stamp) for image in images]
    steps = np.diff(stamps) / 50_000_000
    assert np.array_equal(steps, np.round(steps)), 'stamps lie on the beat'
    assert abs(np.median(np.diff(listener.arrivals)) - 0.05) < 0.01
    assert abs(figures['camera: images a second'] - 20) < 1

    description = yaml.safe_load((folder / 'camera.yaml').read_text())
    focal_length = 56 / math.tan(math.radians(45))
    for info in listener['info']:
        assert (info.width, info.height, info.distortion_model) == (112, 84, 'plumb_bob')
        assert info.header.frame_id == 'camera_optical' and list(info.d) == [0] * 5
        assert np.allclose(info.k, [focal_length, 0, 56, 0, focal_length, 42, 0, 0, 1])
        assert np.allclose(np.reshape(info.p, (3, 4))[:, :3], np.reshape(info.k, (3, 3)))
        assert np.isclose(info.k[0], description['fx'])
    assert {nanoseconds(info.header.stamp) for info in listener['info']} >= set(stamps)

    truth = np.loadtxt(folder / 'groundtruth.tum')
    assert len(truth) == len(listener['pose']) == 30
    assert {pose.header.frame_id for pose in listener['pose']} == {'world'}
    assert np.allclose([numbers(pose.pose) for pose in listener['pose']], truth[:, 1:], atol=1e-8)
    pose_stamps = np.array([nanoseconds(pose.header.stamp) for pose in listener['pose']])
    assert np.allclose(pose_stamps * 1e-9, truth[:, 0], atol=1e-6)
    assert set(stamps) <= set(pose_stamps)
    path = listener['path'][-1]
    assert [numbers(pose.pose) for pose in path.poses] == [numbers(pose.pose) for pose in listener['pose'][:21]]

    names = sorted(path.name for path in (folder / 'rgb').iterdir())
    assert names == [f'{index:04d}.png' for index in range(30)]
    depth = listener['depth'][-1]
    assert (depth.encoding, depth.step) == ('32FC1', 112 * 4)
    metres = np.frombuffer(bytes(depth.data), np.float32)
    assert 0.3 < metres.min() and metres.max() < 9


def test_the_same_seed_gives_the_same_images_in_any_encoding(walk):
    arguments = ('--frames', 4, '--rate', 20, '--seed', 8, '--noise', 4)
    first, _ = walk(*arguments)
    again, _ = walk(*arguments, '--encoding', 'bgr8')
    assert again['image'][0].encoding == 'bgr8'
    # Images may be lost; the last of each is number 3.
    assert np.array_equal(pixels(first['image'][-1]), pixels(again['image'][-1])[:, :, ::-1])


def test_each_fault_is_seen_and_counted(walk):
    listener, figures = walk(
        *('--frames', 60, '--rate', 20, '--seed', 5, '--noise', 3, '--exposure-steps', '--drop', 20),
        *('--textureless', '30:10', '--black-bars', 5, '--clock-jump', '50:-100'),
    )
    lost = figures['camera: images lost']
    assert 3 <= lost <= 25 and figures['camera: images sent'] == 60 - lost
    assert abs(len(listener['image']) - (60 - lost)) <= 3
    assert figures['camera: noisy images'] == figures['camera: images with black bars'] == 60 - lost
    assert figures['camera: exposure steps'] >= 1 and figures['camera: clock jumps'] == 1
    assert 5 <= figures['camera: textureless images'] <= 10

    start = nanoseconds(listener['pose'][0].header.stamp)
    before, after, flat = [], [], []
    for image in listener['image']:
        number = round((nanoseconds(image.header.stamp) - start) / 50_000_000)
        rgb = pixels(image)
        assert not rgb[:5].any() and not rgb[-5:].any()
        (after if number < 0 else before).append(number)
        if rgb[10:-10].std(axis=(0, 1)).max() < 5:
            flat.append(number)
    assert before == sorted(before) and max(before) < 50
    assert after and set(after) <= set(range(50 - 2000, 60 - 2000))
    assert flat and set(flat) <= set(range(30, 40)) and len(flat) >= figures['camera: textureless images'] - 2


def test_the_walk_through_the_node_is_measured(observer, start_node, tmp_path):
    process = start_node(image_topic='/walk/image')
    figures = tmp_path / 'figures.json'
    command = [WORLD_CAMERA, '--topic', '/walk/image', '--frames', '30', '--figures', figures]
    ended = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert ended.returncode == 0, (ended.stderr, process.log())
    values = json.loads(figures.read_text())
    assert values['camera: images sent'] == '30' and int(values['frames mapped']) > 10
    assert (pathlib.Path(values['map']) / 'map.ply').is_file()


@pytest.mark.parametrize(
    'arguments, told',
    [
        (['--rate', '0'], '0.01 to 1000'),
        (['--drop', '101'], '0 to 100'),
        (['--fov', '180'], '1 and 170'),
        (['--textureless', '5'], 'two whole numbers'),
        (['--figures', 'f.json'], '--frames'),
    ],
)
def test_what_cannot_be_done_is_said(arguments, told):
    ended = subprocess.run([WORLD_CAMERA, *arguments], capture_output=True, timeout=30, check=False)
    assert ended.returncode != 0 and told in ended.stderr.decode()
