"""Networks that go wrong, floods, and messages that are large or empty."""

import json
import pathlib
import shutil
import struct
import time

import numpy as np
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image, PointCloud2

from observer import NODE, nanoseconds
from test_running_node import cloud_as_array
from walk import PERIOD, fill_header, raw_image, raw_walk, read_png, file_of, stamp_of

ROOT = pathlib.Path(__file__).resolve().parents[2]


def spoilt_model(folder, name, value):
    """The demo checkpoint with one tensor full of a value."""
    model = ROOT / 'models' / 'demo'
    shutil.copy(model / 'config.json', folder)
    data = bytearray((model / 'weights.safetensors').read_bytes())
    (length,) = struct.unpack('<Q', data[:8])
    entry = json.loads(data[8 : 8 + length])[name]
    assert entry['dtype'] == 'F16'
    start, end = (8 + length + offset for offset in entry['data_offsets'])
    data[start:end] = np.full((end - start) // 2, value, '<f2').tobytes()
    path = folder / 'spoilt.safetensors'
    path.write_bytes(data)
    return str(path)


def test_a_network_that_answers_nonsense_publishes_nothing_and_is_an_error(observer, start_node, tmp_path):
    model = spoilt_model(tmp_path, 'camera_head.pose_branch.fc2.bias', np.nan)
    process = start_node(model=model, map_rate=10.0)
    observer.wait_until_ready(process)
    observer.play(raw_walk(range(10)), observer.raw)

    def status():
        return observer['diagnostics'][-1].status[0]

    assert observer.wait_until(lambda: observer.count('not mapped: invalid_pose') >= 6, 20), observer.figures()
    assert observer.wait_until(lambda: status().level == b'\x02', 5), status()
    assert 'lost its way' in status().message and observer.figures()['state'] == 'lost'
    assert observer['pose'] == observer['odometry'] == observer['tf'] == []
    assert observer.call('reset').success
    assert process.is_running()


def test_depth_that_is_no_number_leaves_the_pose_and_gives_empty_clouds(observer, start_node, tmp_path):
    """Also what comes when every point is filtered."""
    spoilt = spoilt_model(tmp_path, 'depth_head.scratch.output_conv2.2.bias', np.nan)
    for parameters in ({'model': spoilt}, {'conf_threshold': 1000.0}):
        process = start_node(map_rate=10.0, **parameters)
        observer.listen('points', PointCloud2, f'{NODE}/points')
        for name in ('map', 'pose', 'diagnostics'):
            observer[name].clear()
        observer.wait_until_ready(process)
        observer.play(raw_walk(range(8)), observer.raw)
        assert observer.wait_until(lambda: len(observer['pose']) >= 4 and observer['points'] and observer['map'], 20), process.log()
        for cloud in (observer['points'][-1], observer['map'][-1]):
            assert (cloud.width, cloud.height, cloud.point_step, len(cloud.data)) == (0, 1, 20, 0)
            assert cloud.is_dense and len(cloud.fields) == 5
        told = observer['diagnostics'][-1].status[0]
        assert observer.wait_until(lambda: 'no point passes' in observer['diagnostics'][-1].status[0].message, 5), told
        process.stop()


def test_of_a_flood_the_newest_is_mapped_and_the_rest_is_counted(observer, start_node):
    """Images come much faster than they can be mapped: what is published is never old."""
    process = start_node(**{'qos.reliability': 'reliable', 'qos.depth': 100})
    publisher = observer.node.create_publisher(Image, '/image', QoSProfile(depth=500, reliability=ReliabilityPolicy.RELIABLE))
    observer.wait_until_ready(process, publishers=[publisher])
    images = [raw_image(read_png(file_of(index % 40)), stamp_of(0) + index * PERIOD // 20) for index in range(400)]
    for image in images:
        publisher.publish(image)
        time.sleep(0.003)
    newest = nanoseconds(images[-1].header.stamp)
    assert observer.wait_until(lambda: observer['pose'] and nanoseconds(observer['pose'][-1].header.stamp) == newest, 60)
    assert observer.wait_until(lambda: observer.count('frames in') == 400, 5)
    assert observer.wait_until(lambda: observer.count('frames mapped') + observer.count('frames dropped') == 400, 5)
    assert observer.count('frames dropped') > 100
    observer.node.destroy_publisher(publisher)


def test_large_images_in_and_large_clouds_out_with_nothing_lost(observer, start_node):
    """1280x720 at 30 Hz in, clouds of 200,000 points, 4 MB each, out, both reliable, under the shipped DDS profile."""
    process = start_node(
        **{'qos.reliability': 'reliable', 'qos.depth': 30}, voxel_size=0.001, min_observations=1, conf_threshold=0.0, map_rate=10.0, map_max_points=200_000
    )
    publisher = observer.node.create_publisher(Image, '/image', QoSProfile(depth=30, reliability=ReliabilityPolicy.RELIABLE))
    observer.wait_until_ready(process, publishers=[publisher])
    large = [raw_image(np.repeat(np.repeat(read_png(file_of(i)), 12, 1), 9, 0)[:720, :1280], 0) for i in range(8)]
    sent = 240
    start = time.monotonic()
    for index in range(sent):
        image = large[index % len(large)]
        fill_header(image.header, stamp_of(0) + index * PERIOD // 3)
        publisher.publish(image)
        observer.spin(max(0.0, start + (index + 1) / 30 - time.monotonic()))
    assert observer.wait_until(lambda: observer.count('frames in') == sent, 10), observer.figures()
    assert observer.count('frames refused') == 0
    mapped = {nanoseconds(pose.header.stamp) for pose in observer['pose']}
    last = max(mapped)
    assert observer.wait_until(lambda: observer['map'] and nanoseconds(observer['map'][-1].header.stamp) == last, 10)
    clouds = [cloud for cloud in observer['map'] if cloud.width > 100_000]
    assert len(clouds) > 5, [cloud.width for cloud in observer['map']]
    for cloud in clouds:
        assert cloud.width <= 200_000 and len(cloud.data) == cloud.width * 20 and nanoseconds(cloud.header.stamp) in mapped
    assert np.isfinite(cloud_as_array(clouds[-1])['x']).all()
    observer.node.destroy_publisher(publisher)
