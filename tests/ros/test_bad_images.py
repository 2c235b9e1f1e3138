"""Images that cannot be used: the node stays up, counts them by reason, and maps what comes after."""

import numpy as np

from observer import nanoseconds
from walk import compressed_image, compressed_walk, file_of, raw_image, raw_walk, stamp_of

GREY = np.full((84, 112, 3), 128, np.uint8)


def bad_raw_images():
    short, no_step, no_height, short_again = (raw_image(GREY, stamp_of(index)) for index in range(4))
    for image in (short, short_again):
        image.data = image.data[: len(image.data) // 2]
    no_step.step = 0
    no_height.height = 0
    unknown = raw_image(GREY, stamp_of(4), encoding='no_such_encoding')
    return [short, no_step, no_height, short_again, unknown]


def refused(observer):
    return {key: int(value) for key, value in observer.figures().items() if key.startswith('refused: ')}


def test_bad_raw_images_are_counted_and_survived(observer, start_node):
    process = start_node()
    observer.wait_until_ready(process)
    observer.play(bad_raw_images(), observer.raw, period=0.3)
    assert observer.wait_until(lambda: observer.count('frames refused') == 5, 10), (observer.figures(), process.log())
    counts = refused(observer)
    assert sum(counts.values()) == 5 and len(counts) == 4, counts
    assert process.log().count('a frame is refused') == 4, 'each kind is told once'

    observer.play(raw_walk(range(5, 13)), observer.raw)
    assert observer.wait_until(lambda: len(observer['pose']) >= 4, 20), process.log()
    assert process.is_running()


def test_bad_compressed_images_are_counted_and_survived(observer, start_node):
    process = start_node(image_transport='compressed')
    observer.wait_until_ready(process)
    good = file_of(0).read_bytes()
    broken = [good[: len(good) // 2], b'', b'this is not a picture']
    observer.play([compressed_image(data, stamp_of(index)) for index, data in enumerate(broken)], observer.compressed, period=0.3)
    assert observer.wait_until(lambda: observer.count('frames refused') == 3, 10), (observer.figures(), process.log())

    observer.play(compressed_walk(range(3, 11)), observer.compressed)
    assert observer.wait_until(lambda: len(observer['pose']) >= 4, 20), process.log()


def test_an_unset_header_takes_the_fallbacks(observer, start_node):
    process = start_node(camera_frame='front_camera')
    observer.wait_until_ready(process)
    images = raw_walk(range(6))
    for image in images:
        image.header.frame_id = ''
        image.header.stamp.sec = image.header.stamp.nanosec = 0
    before = observer.node.get_clock().now().nanoseconds
    observer.play(images, observer.raw)
    assert observer.wait_until(lambda: len(observer['pose']) >= 4, 20), process.log()
    after = observer.node.get_clock().now().nanoseconds
    assert all(before <= nanoseconds(pose.header.stamp) <= after for pose in observer['pose'])
    assert all(t.header.stamp.sec > 0 for message in observer['tf'] for t in message.transforms)
    assert observer.wait_until(
        lambda: any(status.hardware_id == 'front_camera' for array in observer['diagnostics'] for status in array.status), 5
    )


def test_a_clock_that_begins_anew_begins_a_new_map_once(observer, start_node):
    process = start_node()
    observer.wait_until_ready(process)
    observer.play(raw_walk(range(20, 28)), observer.raw)
    assert observer.wait_until(lambda: observer['pose'] and nanoseconds(observer['pose'][-1].header.stamp) == stamp_of(27), 20)
    observer.play(raw_walk(range(0, 8)), observer.raw)
    assert observer.wait_until(lambda: nanoseconds(observer['pose'][-1].header.stamp) == stamp_of(7), 20), process.log()
    assert observer.wait_until(lambda: observer.count('new maps by clock jumps') == 1, 5)

    # A repeated frame is refused, not mapped twice.
    poses = len(observer['pose'])
    observer.play(raw_walk([7]), observer.raw)
    assert observer.wait_until(lambda: refused(observer).get('refused: stamp_repeated') == 1, 5), observer.figures()
    assert len(observer['pose']) == poses
