"""What the node publishes beside pose and map, and where it stands between the frames of others."""

import pathlib
import re

import numpy as np
import pytest
from geometry_msgs.msg import PoseArray, PoseStamped, PoseWithCovarianceStamped, TransformStamped
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_srvs.srv import SetBool
from tf2_msgs.msg import TFMessage

from observer import NODE, nanoseconds
from test_running_node import cloud_as_array, position, quaternion
from walk import fill_header, raw_walk, stamp_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
FRAMES = 12


def map_walk(observer, process, frames=FRAMES, change=None):
    observer.wait_until_ready(process)
    images = raw_walk(range(frames))
    for image in images:
        if change:
            change(image)
    observer.play(images, observer.raw)
    assert observer.wait_until(
        lambda: observer['pose'] and nanoseconds(observer['pose'][-1].header.stamp) == stamp_of(frames - 1), 30
    ), process.log()


def matrix(transform):
    """A 4x4 matrix of a transform or a pose."""
    place = getattr(transform, 'translation', None) or transform.position
    x, y, z, w = quaternion(getattr(transform, 'rotation', None) or transform.orientation)
    result = np.eye(4)
    result[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    result[:3, 3] = place.x, place.y, place.z
    return result


def link(stamp, parent, child, x=0.0, y=0.0, z=0.0, yaw=0.0):
    message = TransformStamped()
    fill_header(message.header, stamp, parent)
    message.child_frame_id = child
    translation, rotation = message.transform.translation, message.transform.rotation
    translation.x, translation.y, translation.z = x, y, z
    rotation.z, rotation.w = float(np.sin(yaw / 2)), float(np.cos(yaw / 2))
    return message


def links(observer):
    """Transforms that the node sent, by parent and child, then by stamp."""
    found = {}
    for message in observer['tf']:
        for each in message.transforms:
            key = (each.header.frame_id, each.child_frame_id)
            found.setdefault(key, {})[nanoseconds(each.header.stamp)] = each.transform
    return found


@pytest.fixture
def broadcast(observer):
    """Sends transforms as another node does."""
    tf = observer.node.create_publisher(TFMessage, '/tf', 100)
    tf_static = observer.node.create_publisher(TFMessage, '/tf_static', LATCHED)
    yield lambda *transforms, static=False: (tf_static if static else tf).publish(TFMessage(transforms=list(transforms)))
    observer.node.destroy_publisher(tf)
    observer.node.destroy_publisher(tf_static)


def test_each_frame_comes_as_points_depth_and_confidence_that_agree(observer, start_node):
    process = start_node(conf_threshold=1.2, depth_edge=0.0)
    for name, kind in [
        ('points', PointCloud2), ('depth/image', Image), ('depth/camera_info', CameraInfo), ('confidence/image', Image)
    ]:  # fmt: skip
        observer.listen(name, kind, f'{NODE}/{name}')
    map_walk(observer, process)
    last = stamp_of(FRAMES - 1)

    def newest(name):
        assert observer.wait_until(lambda: observer[name] and nanoseconds(observer[name][-1].header.stamp) == last, 10), name
        assert observer[name][-1].header.frame_id == 'camera_optical'
        return observer[name][-1]

    depth, confidence, info, cloud = (newest(n) for n in ('depth/image', 'confidence/image', 'depth/camera_info', 'points'))
    for image in (depth, confidence):
        assert (image.encoding, image.width, image.height, image.step) == ('32FC1', 112, 84, 448)
    depth, confidence = (np.frombuffer(bytes(i.data), '<f4').reshape(84, 112) for i in (depth, confidence))
    assert (depth > 0).all() and np.isfinite(depth).all() and (confidence >= 1).all()
    assert (info.width, info.height) == (112, 84) and abs(info.k[0] - 73) < 5

    assert cloud.is_dense and cloud.height == 1 and 1000 < cloud.width == (confidence >= 1.2).sum()
    points = cloud_as_array(cloud)
    fx, _, cx, _, fy, cy, *_ = info.k
    u, v = (fx * points['x'] / points['z'] + cx), (fy * points['y'] / points['z'] + cy)
    assert np.abs(u - u.round()).max() < 1e-2 and np.abs(v - v.round()).max() < 1e-2, 'points lie on pixels'
    assert np.allclose(points['z'], depth[v.round().astype(int), u.round().astype(int)], rtol=1e-4)


def test_an_organised_cloud_is_a_grid(observer, start_node):
    process = start_node(organised_points=True, conf_threshold=2.0, output_reliability='best_effort')
    best_effort = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
    observer.listen('points', PointCloud2, f'{NODE}/points', best_effort)
    map_walk(observer, process)
    assert observer.wait_until(lambda: observer['points'], 10)
    cloud = observer['points'][-1]
    assert (cloud.width, cloud.height, cloud.row_step) == (112, 84, 112 * 20)
    z = cloud_as_array(cloud)['z']
    assert np.isfinite(z).any()
    assert cloud.is_dense == bool(np.isfinite(z).all())


def test_poses_say_how_sure_they_are_and_keyframes_are_among_them(observer, start_node):
    process = start_node(keyframe_interval=3, map_rate=5.0, **{'scale.source': 'fixed', 'scale.uncertainty': 0.5})
    observer.listen('pwc', PoseWithCovarianceStamped, f'{NODE}/pose_with_covariance')
    observer.listen('keyframes', PoseArray, f'{NODE}/keyframes', LATCHED)
    map_walk(observer, process)
    poses = {nanoseconds(pose.header.stamp): pose for pose in observer['pose']}
    assert observer.wait_until(lambda: len(observer['pwc']) == len(poses), 5)
    for message, odometry in zip(observer['pwc'], observer['odometry']):
        assert message.header.frame_id == 'map'
        assert message.pose.pose == poses[nanoseconds(message.header.stamp)].pose
        covariance = np.array(message.pose.covariance).reshape(6, 6)
        assert np.allclose(covariance, covariance.T) and (np.linalg.eigvalsh(covariance) > 0).all()
        away = np.linalg.norm(position(message.pose.pose))
        assert np.sqrt(covariance[:3, :3].trace()) >= 0.5 * away
        assert (odometry.pose.covariance == message.pose.covariance).all()
    newest = stamp_of(FRAMES - 1)
    assert observer.wait_until(
        lambda: observer['keyframes'] and nanoseconds(observer['keyframes'][-1].header.stamp) == newest, 10
    )
    keyframes = observer['keyframes'][-1]
    assert keyframes.header.frame_id == 'map'
    assert 4 <= len(keyframes.poses) < len(poses)
    known = [pose.pose for pose in poses.values()]
    assert all(pose in known for pose in keyframes.poses)
    assert observer.wait_until(lambda: observer.count('keyframes') == len(keyframes.poses), 5)


def test_beside_the_odometry_of_others_only_map_to_odom_is_sent_and_the_chain_ends_at_the_pose(observer, start_node, broadcast):
    process = start_node(transform_tolerance=0.25)
    observer.wait_until_ready(process)
    broadcast(link(0, 'base_link', 'camera_optical', x=0.1, z=0.4), static=True)

    def odometry(time):
        seconds = (time - stamp_of(0)) * 1e-9
        return link(time, 'odom', 'base_link', x=5 + seconds, y=-2.0, yaw=0.3 * seconds)

    # The odometry's times lie between those of the images.
    for index in range(FRAMES + 1):
        broadcast(odometry(stamp_of(index) - 40_000_000), odometry(stamp_of(index) + 10_000_000))
        observer.spin(0.02)
    sent_by_us = sum(len(message.transforms) for message in observer['tf'])
    map_walk(observer, process)
    observer.received['tf'][:] = observer['tf'][sent_by_us // 2 :]
    found = links(observer)
    assert ('map', 'odom') in found, process.log()
    assert ('odom', 'base_link') not in found or not set(found['odom', 'base_link']) & {stamp_of(i) for i in range(FRAMES)}
    assert process.log().count('another node publishes odom to base_link') == 1
    checked = 0
    for pose in observer['pose']:
        stamp = nanoseconds(pose.header.stamp)
        map_from_odom = matrix(found['map', 'odom'][stamp + 250_000_000])
        # At the image's time, between two transforms 50 ms apart that turn by 15 mrad.
        chain = map_from_odom @ matrix(odometry(stamp).transform)
        assert np.allclose(chain, matrix(pose.pose), atol=2e-4), stamp
        checked += 1
    assert checked >= FRAMES // 2
    assert {message.header.frame_id for message in observer['odometry']} == {'map'}
    start = matrix(observer['pose'][0].pose)
    assert np.linalg.norm(start[:3, 3]) < 0.3, 'the map lies where the base was'


def test_lengths_become_metres_by_the_odometry(observer, start_node, broadcast):
    """The wheels count twice as far as the network's unit says."""
    process = start_node(map_rate=5.0, **{'scale.source': 'odometry'})
    observer.wait_until_ready(process)
    observer.listen('pwc', PoseWithCovarianceStamped, f'{NODE}/pose_with_covariance')
    truth = np.loadtxt(ROOT / 'models' / 'demo' / 'walk' / 'groundtruth.tum')[:, 1:]
    frames = 80

    def odometry(index):
        # base_link is the camera's body: x forward, y left, z up.
        x, y, z = 2 * truth[index, 2], -2 * truth[index, 0], -2 * truth[index, 1]
        message = link(stamp_of(index), 'odom', 'base_link', x, y, z)
        rotation = message.transform.rotation
        rotation.x, rotation.y, rotation.z, rotation.w = (
            truth[index, 5], -truth[index, 3], -truth[index, 4], truth[index, 6]
        )  # fmt: skip
        return message

    for index, image in enumerate(raw_walk(range(frames))):
        broadcast(odometry(index))
        observer.spin(0.02)
        observer.raw.publish(image)
        observer.spin(0.08)
    known = re.compile(r'odometry: ([\d.]+) m in a unit, within ([\d.]+) %')
    assert observer.wait_until(lambda: known.match(observer.figures()['scale']), 10), (observer.figures()['scale'], process.log())
    factor, _ = map(float, known.match(observer.figures()['scale']).groups())
    # As near as the demo model's own path allows.
    assert abs(factor / 2 - 1) < 0.1, factor
    assert 'lengths are metres from now on' in process.log()
    first, last = (np.sqrt(np.array(observer['pwc'][i].pose.covariance).reshape(6, 6)[:3, :3].trace()) for i in (8, -1))
    assert last < 0.5, (first, last)
    newest = nanoseconds(observer['pose'][-1].header.stamp)
    assert observer.wait_until(lambda: nanoseconds(observer['path'][-1].header.stamp) == newest, 10)
    way = np.array([position(pose.pose) for pose in observer['path'][-1].poses])
    extent = np.ptp(way, axis=0) / (2 * np.ptp(truth[:frames, [2, 0, 1]], axis=0))
    assert (0.7 < extent[:2]).all() and (extent[:2] < 1.4).all(), ('the whole path has grown', extent)


def test_odometry_that_never_comes_is_told(observer, start_node):
    process = start_node(publish_odom_to_base=False, transform_timeout=0.0)
    map_walk(observer, process)
    assert observer.wait_until(lambda: observer.count('odometry missing') == len(observer['pose']), 5)
    assert 'nobody says where base_link is in odom' in process.log()
    assert set(links(observer)) == set()


def test_no_frame_gets_a_second_parent(observer, start_node, broadcast):
    process = start_node()
    observer.wait_until_ready(process)
    broadcast(link(0, 'world', 'odom'), static=True)
    observer.spin(0.5)
    map_walk(observer, process)
    assert set(links(observer)) == {('odom', 'base_link')}
    assert 'another node publishes world to odom' in process.log()


def test_the_camera_is_placed_for_those_who_look_unless_others_do(observer, start_node, broadcast):
    observer.listen('tf_static', TFMessage, '/tf_static', QoSProfile(
        depth=10, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
    ))  # fmt: skip
    process = start_node(camera_in_base=[0.2, 0.0, 0.5, 0.0, 0.0, 0.0])
    map_walk(observer, process)
    (message,) = observer['tf_static']
    (placed,) = message.transforms
    assert (placed.header.frame_id, placed.child_frame_id) == ('base_link', 'camera_optical')
    # Optical z, ahead, is x of the robot.
    assert np.allclose(matrix(placed.transform) @ [0, 0, 1, 1], [1.2, 0, 0.5, 1])
    process.stop()

    observer['tf_static'].clear()
    observer['diagnostics'].clear()
    observer['pose'].clear()
    process = start_node()
    observer.wait_until_ready(process)
    broadcast(link(0, 'base_link', 'mast', z=1.0), link(0, 'mast', 'cam', yaw=1.5707963267948966), static=True)
    observer.spin(0.5)

    def body(image):
        image.header.frame_id = '/cam'

    map_walk(observer, process, change=body)
    sent = {t.child_frame_id for message in observer['tf_static'] for t in message.transforms}
    assert sent == {'mast', 'cam'}, 'only ours'
    # The camera looks to the robot's left: what was ahead of the camera before is now to the left of the robot.
    ahead = matrix(observer['pose'][-1].pose)[:3, 3]
    assert np.linalg.norm(ahead) > 0.05


def test_pause_and_autostart(observer, start_node):
    process = start_node(autostart=False)
    observer.wait_until_ready(process)
    observer.play(raw_walk(range(4)), observer.raw)
    assert observer.wait_until(lambda: observer.figures().get('state') == 'paused' and observer.count('frames while paused'), 5)
    assert observer['pose'] == []
    assert observer.call('pause', kind=SetBool, data=False).success
    observer.play(raw_walk(range(4, 12)), observer.raw)
    assert observer.wait_until(lambda: observer['pose'] and nanoseconds(observer['pose'][-1].header.stamp) == stamp_of(11), 20)
    assert observer.call('pause', kind=SetBool, data=True).success
    mapped = len(observer['pose'])
    observer.play(raw_walk(range(12, 16)), observer.raw)
    observer.spin(0.5)
    assert len(observer['pose']) == mapped
    assert observer.call('save_map').success, 'what is there can be saved'


def test_save_trajectory(observer, start_node):
    process = start_node(map_formats='glb, kitti')
    observer.wait_until_ready(process)
    early = observer.call('save_trajectory')
    assert not early.success and 'no trajectory' in early.message
    map_walk(observer, process)
    saved = observer.call('save_trajectory')
    assert saved.success, saved.message
    file = pathlib.Path(saved.message)
    assert file.name == 'trajectory.tum' and len(np.loadtxt(file)) == len(observer['pose'])
    assert np.loadtxt(file.parent / 'trajectory.kitti').shape == (len(observer['pose']), 12)
    saved = observer.call('save_map')
    assert saved.success, saved.message
    files = {path.name for path in pathlib.Path(saved.message).iterdir()}
    assert files == {'map.ply', 'trajectory.tum', 'preview.png', 'map.glb', 'trajectory.kitti'}


def test_two_nodes_side_by_side(observer, start_node):
    """Each in a namespace, each with a camera of its own."""
    front = start_node(namespace='/front', image_topic='/image', map_frame='front_map', odom_frame='front_odom', base_frame='front_base')
    rear = start_node(namespace='/rear', image_topic='/rear/image', map_frame='rear_map', odom_frame='rear_odom', base_frame='rear_base')
    publisher = observer.node.create_publisher(Image, '/rear/image', 5)
    for name in ('front', 'rear'):
        observer.listen(name, PoseStamped, f'/{name}/lingbot_map/pose')

    def ready(name):
        states = [s for array in observer['diagnostics'] for s in array.status if s.name == f'{name}/lingbot_map: mapping']
        return states and {pair.key: pair.value for pair in states[-1].values}['state'] == 'waiting for images'

    assert observer.wait_until(lambda: ready('front') and ready('rear'), 120), front.log() + rear.log()
    for image in raw_walk(range(10)):
        observer.raw.publish(image)
        publisher.publish(image)
        observer.spin(0.2)
    assert observer.wait_until(
        lambda: all(observer[n] and nanoseconds(observer[n][-1].header.stamp) == stamp_of(9) for n in ('front', 'rear')), 30
    ), front.log() + rear.log()
    assert {pose.header.frame_id for pose in observer['front']} == {'front_map'}
    assert {pose.header.frame_id for pose in observer['rear']} == {'rear_map'}


def test_the_documented_topics_and_services_are_those_of_the_node(observer, start_node):
    process = start_node()
    observer.wait_until_ready(process)
    text = (ROOT / 'docs' / 'ros.md').read_text()

    def table(title):
        section = re.search(rf'^## {title}\n(.*?)^## ', text, re.S | re.M).group(1)
        rows = re.findall(r'^\| `([^`]+)`(?: \((in)\))? \| ([\w/]+)', section, re.M)
        assert rows, title
        return rows

    documented = {(name.replace('~', NODE), kind) for name, direction, kind in table('Topics') if not direction}
    published = observer.node.get_publisher_names_and_types_by_node(NODE[1:], '/')
    known = {(name, kind.replace('/msg/', '/')) for name, kinds in published for kind in kinds}
    ros = {'/rosout', '/parameter_events'}
    assert {entry for entry in known if entry[0] not in ros} == documented

    documented = {(name.replace('~', NODE), kind) for name, _, kind in table('Services')}
    served = observer.node.get_service_names_and_types_by_node(NODE[1:], '/')
    known = {(name, kind.replace('/srv/', '/')) for name, kinds in served for kind in kinds}
    parameters = re.compile(rf'{NODE}/(\w*parameter\w*|get_type_description)$')
    assert {entry for entry in known if not parameters.match(entry[0])} == documented
