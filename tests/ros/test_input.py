"""What comes in beside well-formed images in order: calibration, QoS, time, sizes."""

import struct
import zlib

import numpy as np
import pytest
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image

from observer import NODE, nanoseconds
from test_bad_images import refused
from walk import camera_info, raw_image, raw_walk, stamp_of


def last_stamp(observer):
    return nanoseconds(observer['pose'][-1].header.stamp) if observer['pose'] else 0


def play_with_info(observer, indices, info):
    for image in raw_walk(indices):
        info.header = image.header
        observer.info.publish(info)
        observer.spin(0.02)
        observer.raw.publish(image)
        observer.spin(0.1)


def status_messages(observer):
    return [status.message for array in observer['diagnostics'] for status in array.status]


def test_a_calibration_is_used_and_agrees_with_the_network(observer, start_node):
    process = start_node(intrinsics='calibrated')
    observer.wait_until_ready(process)
    play_with_info(observer, range(12), camera_info(0))
    assert observer.wait_until(lambda: last_stamp(observer) == stamp_of(11), 20), process.log()
    assert observer.wait_until(lambda: observer.figures().get('field of view calibrated') == '75.0', 5)
    figures = observer.figures()
    assert figures['calibration'] == 'images are used as they are'
    assert abs(float(figures['field of view predicted']) - 75) < 5
    assert 'field of view' not in process.log()


def test_a_wrong_calibration_is_noticed(observer, start_node):
    process = start_node()
    observer.wait_until_ready(process)
    play_with_info(observer, range(12), camera_info(0, focal_length=120.0))
    assert observer.wait_until(lambda: any('field of view' in text for text in status_messages(observer)), 20)
    assert process.log().count('sees a field of view') == 1


def test_a_lens_is_straightened_unless_that_is_done_or_not_wanted(observer, start_node):
    for parameters, expected in [({}, 'images are rectified'), ({'rectify': 'never'}, 'images are used as they are')]:
        process = start_node(**parameters)
        observer['diagnostics'].clear()
        observer['pose'].clear()
        observer.wait_until_ready(process)
        play_with_info(observer, range(8), camera_info(0, distortion=(-0.2, 0.02, 0, 0, 0)))
        assert observer.wait_until(lambda: last_stamp(observer) == stamp_of(7), 20), process.log()
        assert observer.wait_until(lambda: observer.figures().get('calibration') == expected, 5), observer.figures()
        process.stop()


def test_an_unusable_or_foreign_calibration(observer, start_node):
    process = start_node(rectify='always')
    observer.wait_until_ready(process)
    observer.play(raw_walk(range(2)), observer.raw, period=0.3)
    assert observer.wait_until(lambda: refused(observer).get('refused: no_calibration') == 2, 5), observer.figures()
    play_with_info(observer, range(2, 4), camera_info(0, focal_length=0.0))
    assert observer.wait_until(lambda: 'uncalibrated' in observer.figures()['calibration'], 5)
    bad = camera_info(0, distortion=(0.1,) * 3)
    play_with_info(observer, range(4, 6), bad)
    assert observer.wait_until(lambda: 'unusable: 3 coefficients' in observer.figures()['calibration'], 5)
    play_with_info(observer, range(6, 8), camera_info(0, size=(100, 100)))
    assert observer.wait_until(lambda: refused(observer).get('refused: calibration_size') == 2, 5), observer.figures()
    play_with_info(observer, range(8, 16), camera_info(0))
    assert observer.wait_until(lambda: last_stamp(observer) == stamp_of(15), 20), process.log()
    assert process.is_running()


def test_masked_and_cropped_parts_are_not_mapped(observer, start_node, tmp_path):
    mask = tmp_path / 'mask.png'
    mask.write_bytes(png_of_two(0, 255))
    widths = []
    for parameters in ({}, {'mask_image': str(mask)}, {'crop': [56, 0, 0, 0]}):
        process = start_node(map_rate=5.0, conf_threshold=0.0, **parameters)
        for name in ('diagnostics', 'map', 'pose'):
            observer[name].clear()
        observer.wait_until_ready(process)
        observer.play(raw_walk(range(8)), observer.raw)
        assert observer.wait_until(lambda: last_stamp(observer) == stamp_of(7), 20), process.log()
        assert observer.wait_until(lambda: observer['map'] and nanoseconds(observer['map'][-1].header.stamp) == stamp_of(7))
        widths.append(observer['map'][-1].width)
        process.stop()
    whole, masked, cropped = widths
    assert 0.2 < masked / whole < 0.8 and cropped > 0


def png_of_two(left, right):
    def chunk(kind, data):
        body = kind + data
        return struct.pack('>I', len(data)) + body + struct.pack('>I', zlib.crc32(body))

    header = struct.pack('>IIBBBBB', 2, 1, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes([0, left, right]))
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header) + chunk(b'IDAT', rows) + chunk(b'IEND', b'')


def test_no_images_and_a_wrong_qos_are_told(observer, start_node):
    process = start_node(image_topic='/nobody/sends/this')
    assert observer.wait_until(
        lambda: any('no images on /nobody/sends/this' in text for text in status_messages(observer)), 120
    ), process.log()
    told = next(text for text in status_messages(observer) if 'no images on /nobody' in text)
    assert '(QoS best_effort, depth 2; publishers seen: 0)' in told
    assert process.log().count('no images on') == 1
    process.stop()

    observer['diagnostics'].clear()
    process = start_node(**{'qos.reliability': 'reliable', 'qos.depth': 5})
    assert observer.wait_until(
        lambda: any('offers best effort' in text and 'depth 5' in text for text in status_messages(observer)), 60
    ), (status_messages(observer)[-1], process.log())
    assert process.log().count('no image can arrive') == 1


@pytest.mark.parametrize('offered', [ReliabilityPolicy.RELIABLE, ReliabilityPolicy.BEST_EFFORT])
def test_by_default_any_publisher_is_heard(observer, start_node, offered):
    publisher = observer.node.create_publisher(Image, '/other', QoSProfile(depth=5, reliability=offered))
    process = start_node(image_topic='/other')
    assert observer.wait_until(lambda: observer.figures().get('state') == 'waiting for images', 120), process.log()
    observer.play(raw_walk(range(6)), publisher)
    assert observer.wait_until(lambda: last_stamp(observer) == stamp_of(5), 20), process.log()
    assert observer.wait_until(lambda: observer.figures()['image publishers'] == '1', 5)
    observer.node.destroy_publisher(publisher)


def test_broken_stamps_change_nothing(observer, start_node):
    process = start_node()
    observer.wait_until_ready(process)
    walk = raw_walk(range(14))
    observer.play(walk[:6], observer.raw)
    far, impossible, negative = raw_walk([6, 7, 8])
    far.header.stamp.sec = 2_000_000_000
    impossible.header.stamp.nanosec = 1_000_000_000
    negative.header.stamp.sec = -5
    observer.play([far, walk[9], impossible, walk[10], negative, *walk[11:]], observer.raw)
    assert observer.wait_until(lambda: last_stamp(observer) == stamp_of(13), 20), process.log()
    assert observer.wait_until(lambda: observer.count('frames refused') == 3, 5), observer.figures()
    assert refused(observer) == {'refused: stamp_jump': 1, 'refused: invalid_stamp': 2}
    assert observer.count('new maps by clock jumps') == 0


def test_a_gap_is_counted_and_begins_a_new_map_when_asked_to(observer, start_node):
    process = start_node(new_map_gap_seconds=2.0)
    observer.wait_until_ready(process)
    observer.play(raw_walk([*range(5), 12, *range(40, 46)]), observer.raw)
    assert observer.wait_until(lambda: last_stamp(observer) == stamp_of(45), 20), process.log()
    assert observer.wait_until(lambda: observer.count('new maps by gaps') == 1, 5)
    assert observer.count('gaps') == 1


def test_another_size_begins_a_new_map_or_is_refused(observer, start_node):
    large = [raw_image(np.full((168, 224, 3), 90 + i, np.uint8), stamp_of(i)) for i in range(6, 12)]
    for choice in ('new_map', 'refuse'):
        process = start_node(size_change=choice)
        for name in ('diagnostics', 'pose'):
            observer[name].clear()
        observer.wait_until_ready(process)
        observer.play(raw_walk(range(6)), observer.raw)
        assert observer.wait_until(lambda: last_stamp(observer) == stamp_of(5), 20), process.log()
        observer.play(large, observer.raw)
        if choice == 'new_map':
            assert observer.wait_until(lambda: last_stamp(observer) == stamp_of(11), 20), process.log()
            assert observer.wait_until(lambda: observer.count('new maps by sizes') == 1, 5)
        else:
            assert observer.wait_until(lambda: refused(observer).get('refused: size_change') == 6, 5)
            assert last_stamp(observer) == stamp_of(5)
        process.stop()


def test_type_names_are_read_as_documented(observer, start_node):
    process = start_node()
    observer.wait_until_ready(process)
    images = raw_walk(range(6))
    for image in images:
        image.encoding = '8UC3'
    observer.play(images, observer.raw)
    assert observer.wait_until(lambda: last_stamp(observer) == stamp_of(5), 20), process.log()
    assert process.log().count('encoded as 8UC3') == 1 and 'read as bgr8' in process.log()


def test_what_may_change_changes_and_the_rest_is_refused(observer, start_node):
    process = start_node()
    observer.wait_until_ready(process)
    set_client = observer.node.create_client(SetParameters, f'{NODE}/set_parameters')
    get_client = observer.node.create_client(GetParameters, f'{NODE}/get_parameters')
    assert set_client.wait_for_service(timeout_sec=10) and get_client.wait_for_service(timeout_sec=10)

    def change(name, value):
        kinds = {float: ('double_value', ParameterType.PARAMETER_DOUBLE), str: ('string_value', ParameterType.PARAMETER_STRING)}
        field, kind = kinds[type(value)]
        parameter = Parameter(name=name, value=ParameterValue(type=kind, **{field: value}))
        future = set_client.call_async(SetParameters.Request(parameters=[parameter]))
        assert observer.wait_until(future.done, 10)
        return future.result().results[0]

    assert change('conf_threshold', 2.5).successful
    future = get_client.call_async(GetParameters.Request(names=['conf_threshold', 'qos.depth']))
    assert observer.wait_until(future.done, 10)
    assert [v.double_value for v in future.result().values][0] == 2.5
    assert future.result().values[1].integer_value == 2
    for name, value, told in [
        ('conf_threshold', -1.0, '0 to 1000'),
        ('model', '/elsewhere', 'start again'),
        ('conf_treshold', 2.0, 'conf_threshold'),
    ]:
        result = change(name, value)
        assert not result.successful and told in result.reason, result.reason
