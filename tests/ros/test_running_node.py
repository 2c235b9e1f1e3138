"""The node on the demo walk, seen from another process."""

import math
import pathlib
import signal

import numpy as np
import pytest

from observer import nanoseconds
from walk import compressed_walk, raw_walk, stamp_of, true_positions

FRAMES = 40


def position(pose):
    return np.array([pose.position.x, pose.position.y, pose.position.z])


def quaternion(rotation):
    return np.array([rotation.x, rotation.y, rotation.z, rotation.w])


def cloud_as_array(cloud):
    fields = [(field.name, np.float32) for field in cloud.fields]
    assert [field.offset for field in cloud.fields] == [4 * i for i in range(len(fields))]
    return np.frombuffer(bytes(cloud.data), np.dtype(fields))


@pytest.fixture
def mapped(observer, start_node):
    """A node that has mapped the first frames of the walk."""
    process = start_node(map_rate=5.0)
    observer.wait_until_ready(process)
    observer.play(raw_walk(range(FRAMES)), observer.raw)
    # Under load single frames may be overtaken by newer ones: that is what the node is for.
    assert observer.wait_until(lambda: nanoseconds_of_last(observer['pose']) == stamp_of(FRAMES - 1)), process.log()
    assert observer.wait_until(lambda: observer['path'] and nanoseconds_of_last(observer['path']) == stamp_of(FRAMES - 1))
    assert observer.wait_until(lambda: nanoseconds_of_last(observer['map']) == stamp_of(FRAMES - 1))
    return process


def nanoseconds_of_last(messages):
    return nanoseconds(messages[-1].header.stamp) if messages else 0


def test_everything_is_published_with_consistent_stamps_and_frames(observer, mapped):
    sent = {stamp_of(index) for index in range(FRAMES)}
    poses = observer['pose']
    stamps = [nanoseconds(pose.header.stamp) for pose in poses]
    assert len(stamps) > FRAMES // 2
    assert stamps == sorted(set(stamps)), 'stamps rise'
    assert set(stamps) <= sent, 'stamps are the images own'
    assert {pose.header.frame_id for pose in poses} == {'map'}

    assert [nanoseconds(message.header.stamp) for message in observer['odometry']] == stamps
    assert {(message.header.frame_id, message.child_frame_id) for message in observer['odometry']} == {
        ('odom', 'base_link')
    }

    links = {}
    for message in observer['tf']:
        for transform in message.transforms:
            key = (transform.header.frame_id, transform.child_frame_id)
            links.setdefault(key, {})[nanoseconds(transform.header.stamp)] = transform.transform
    assert set(links) == {('map', 'odom'), ('odom', 'base_link')}
    for pose, odometry in zip(poses, observer['odometry']):
        stamp = nanoseconds(pose.header.stamp)
        assert math.isclose(np.linalg.norm(quaternion(pose.pose.orientation)), 1.0, abs_tol=1e-6)
        assert np.isfinite(position(pose.pose)).all()
        to_odom, to_base = links['map', 'odom'][stamp], links['odom', 'base_link'][stamp]
        # map and odom coincide, so the composition is the second link.
        assert quaternion(to_odom.rotation).tolist() == [0, 0, 0, 1]
        moved = np.array([to_base.translation.x, to_base.translation.y, to_base.translation.z])
        assert np.allclose(moved, position(pose.pose), atol=1e-9)
        assert np.allclose(quaternion(to_base.rotation), quaternion(pose.pose.orientation), atol=1e-9)
        assert np.allclose(position(odometry.pose.pose), position(pose.pose), atol=1e-9)

    path = observer['path'][-1]
    assert path.header.frame_id == 'map'
    assert [nanoseconds(pose.header.stamp) for pose in path.poses] == stamps
    assert np.allclose(position(path.poses[-1].pose), position(poses[-1].pose), atol=1e-9)


def test_the_map_is_the_room_with_z_up(observer, mapped):
    cloud = observer['map'][-1]
    assert cloud.header.frame_id == 'map'
    assert (cloud.height, cloud.point_step, cloud.is_dense) == (1, 20, True)
    assert [field.name for field in cloud.fields] == ['x', 'y', 'z', 'rgb', 'confidence']
    points = cloud_as_array(cloud)
    assert len(points) == cloud.width > 1000
    assert all(np.isfinite(points[name]).all() for name in ('x', 'y', 'z', 'confidence'))
    assert (points['confidence'] >= 1.5).all()
    # The room is 6 x 5 x 2.8 m and is entered looking along x. Most of it lies ahead of the start, none far above.
    assert np.median(points['x']) > 0.5
    low, high = np.percentile(points['z'], [2, 98])
    assert -2.5 < low < -0.3 and 0.2 < high < 3.0 and high - low < 3.5
    packed = points['rgb'].copy().view(np.uint32)
    assert (packed >> 24 == 0).all() and len(np.unique(packed)) > 100


def test_the_path_follows_the_truth(observer, mapped):
    truth = true_positions()
    for pose in observer['pose']:
        index = (nanoseconds(pose.header.stamp) - stamp_of(0)) // 100_000_000
        error = np.linalg.norm(position(pose.pose) - truth[index])
        assert error < 0.6, f'frame {index} is {error:.2f} m off'


def test_diagnostics_say_what_is_going_on(observer, mapped):
    assert observer.wait_until(lambda: observer.figures().get('state') == 'mapping', 5)
    assert observer.wait_until(
        lambda: observer.count('frames mapped') + observer.count('frames dropped') == observer.count('frames in'), 5
    )
    figures = observer.figures()
    assert 0 < observer.count('frames mapped') <= observer.count('frames in') <= FRAMES
    assert observer.count('frames refused') == 0
    assert 'cpu' in figures['provider'].lower()
    assert figures['cache mode']
    assert 0 < observer.count('cache fill tokens') <= observer.count('cache capacity tokens')
    assert 0 < float(figures['seconds per frame']) < 5
    assert observer.count('memory MB') > 10


def test_save_map_and_reset(observer, mapped):
    saved = observer.call('save_map')
    assert saved.success, saved.message
    folder = pathlib.Path(saved.message)
    assert folder.is_absolute()
    files = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert {'trajectory.tum', 'map.ply', 'preview.png'} <= set(files)
    assert len((folder / 'trajectory.tum').read_text().splitlines()) == len(observer['pose'])

    assert observer.call('reset').success
    assert observer.wait_until(lambda: observer['map'][-1].width == 0, 10), 'the emptied map is told'
    again = observer.call('save_map')
    assert not again.success and 'no map' in again.message

    before = len(observer['pose'])
    observer.play(raw_walk(range(FRAMES, FRAMES + 8)), observer.raw)
    assert observer.wait_until(lambda: len(observer['pose']) >= before + 4, 20), 'a new map begins'


@pytest.mark.parametrize('sent', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_idle_node_cleanly_and_soon(observer, start_node, sent):
    process = start_node()
    observer.wait_until_ready(process)
    observer.play(raw_walk(range(8)), observer.raw)
    assert observer.wait_until(lambda: nanoseconds_of_last(observer['pose']) == stamp_of(7), 20)
    code, seconds = process.end(sent)
    assert code == 0, process.log()
    assert seconds < 2.0


def test_the_map_is_saved_on_exit_if_asked_to(observer, start_node, tmp_path):
    process = start_node(save_on_exit=True)
    observer.wait_until_ready(process)
    observer.play(raw_walk(range(8)), observer.raw)
    assert observer.wait_until(lambda: nanoseconds_of_last(observer['pose']) == stamp_of(7), 20)
    code, _ = process.end(signal.SIGTERM)
    assert code == 0, process.log()
    assert [path.name for path in (tmp_path / 'maps').glob('*/map.ply')] == ['map.ply'], 'saved on exit'


def test_compressed_images(observer, start_node):
    process = start_node(image_transport='compressed')
    observer.wait_until_ready(process)
    observer.play(compressed_walk(range(8)), observer.compressed)
    assert observer.wait_until(lambda: nanoseconds_of_last(observer['pose']) == stamp_of(7), 20), process.log()


def test_frames_and_links_are_parameters(observer, start_node):
    process = start_node(map_frame='/world', odom_frame='visual_odom', base_frame='robot', publish_map_to_odom=False)
    observer.wait_until_ready(process)
    observer.play(raw_walk(range(8)), observer.raw)
    assert observer.wait_until(lambda: len(observer['pose']) >= 4, 20), process.log()
    assert observer['pose'][-1].header.frame_id == 'world'
    links = {(t.header.frame_id, t.child_frame_id) for message in observer['tf'] for t in message.transforms}
    assert links == {('visual_odom', 'robot')}
    assert observer['odometry'][-1].child_frame_id == 'robot'


@pytest.mark.parametrize(
    'parameters, told',
    [
        ({'model': ''}, 'model is not set'),
        ({'model': '/nowhere/at/all'}, '/nowhere/at/all'),
        ({'provider': 'gpu'}, 'auto | cpu | cuda | tensorrt'),
        ({'map_rate': 0.0}, '0.01 to 100'),
        ({'onnxruntime_library': '/nowhere/libonnxruntime.so'}, '/nowhere/libonnxruntime.so'),
        ({'map_frame': 'odom', 'odom_frame': '/odom'}, 'each needs a frame of its own'),
        ({'mask_image': '/nowhere/mask.png'}, '/nowhere/mask.png'),
        ({'crop': [1, 2, 3]}, 'array of 4 integers'),
        ({'scale.source': 'camera_height'}, 'scale.camera_height'),
        ({'provider': 'cuda'}, 'cuda'),
        ({'provider': 'tensorrt'}, 'tensorrt'),
    ],
)
def test_a_start_that_cannot_succeed_says_why(start_node, parameters, told):
    process = start_node(**parameters)
    assert process.wait(timeout=30) == 1
    assert told in process.log()


def test_unknown_parameters_are_reported_and_integers_taken_for_numbers(observer, start_node):
    process = start_node(conf_treshold=2.0, voxel_size=1, map_rate=2)
    observer.wait_until_ready(process)
    assert 'conf_treshold is not known' in process.log()
    assert 'a typing error for conf_threshold?' in process.log()
