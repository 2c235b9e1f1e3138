"""The demo walk as camera messages, and its truth."""

import pathlib
import struct
import zlib

import numpy as np
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

WALK = pathlib.Path(__file__).resolve().parents[2] / 'models' / 'demo' / 'walk'
PERIOD = 100_000_000
START = 1_700_000_000 * 1_000_000_000


def stamp_of(index):
    return START + index * PERIOD


def fill_header(header, stamp, frame_id='camera_optical'):
    header.stamp.sec, header.stamp.nanosec = divmod(stamp, 1_000_000_000)
    header.frame_id = frame_id


def file_of(index):
    return WALK / 'rgb' / f'{index:04d}.png'


def read_png(path):
    """Pixels of an 8-bit RGB PNG without interlacing, which the walk's files are."""
    data = path.read_bytes()
    width, height, depth, colour, _, _, interlace = struct.unpack('>IIBBBBB', data[16:29])
    assert (depth, colour, interlace) == (8, 2, 0), path
    compressed, at = b'', 8
    while at < len(data):
        length, kind = struct.unpack('>I4s', data[at : at + 8])
        if kind == b'IDAT':
            compressed += data[at + 8 : at + 8 + length]
        at += length + 12
    rows = np.frombuffer(zlib.decompress(compressed), np.uint8).reshape(height, width * 3 + 1)
    pixels = np.zeros((height + 1, width * 3 + 3), np.int64)
    for y, row in enumerate(rows):
        method, row = row[0], row[1:].astype(np.int64)
        above = pixels[y]
        line = pixels[y + 1]
        for x in range(width * 3):
            left, up, corner = line[x], above[x + 3], above[x]
            if method == 0:
                guess = 0
            elif method == 1:
                guess = left
            elif method == 2:
                guess = up
            elif method == 3:
                guess = (left + up) // 2
            else:
                estimate = left + up - corner
                guess = min((left, up, corner), key=lambda value: abs(estimate - value))
            line[x + 3] = (row[x] + guess) & 0xFF
    return pixels[1:, 3:].astype(np.uint8).reshape(height, width, 3)


def raw_image(pixels, stamp, frame_id='camera_optical', encoding='rgb8'):
    message = Image()
    fill_header(message.header, stamp, frame_id)
    message.height, message.width = pixels.shape[:2]
    message.encoding = encoding
    message.step = message.width * 3
    message.data = pixels.tobytes()
    return message


def compressed_image(data, stamp, kind='png'):
    message = CompressedImage()
    fill_header(message.header, stamp)
    message.format = kind
    message.data = data
    return message


def raw_walk(indices):
    return [raw_image(read_png(file_of(index)), stamp_of(index)) for index in indices]


def camera_info(stamp, focal_length=73.0, distortion=(0.0,) * 5, size=(112, 84)):
    """By default that of the walk's camera: 75 degrees across 112 pixels."""
    message = CameraInfo()
    fill_header(message.header, stamp)
    message.width, message.height = size
    message.distortion_model = 'plumb_bob'
    message.d = [float(value) for value in distortion]
    message.k = [focal_length, 0.0, size[0] / 2, 0.0, focal_length, size[1] / 2, 0.0, 0.0, 1.0]
    message.r = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    message.p = [focal_length, 0.0, size[0] / 2, 0.0, 0.0, focal_length, size[1] / 2, 0.0, 0.0, 0.0, 1.0, 0.0]
    return message


def compressed_walk(indices):
    return [compressed_image(file_of(index).read_bytes(), stamp_of(index)) for index in indices]


def true_positions():
    """Camera positions of the walk in a REP-103 map (x forward, y left, z up) that starts at the first camera."""
    optical = np.loadtxt(WALK / 'groundtruth.tum')[:, 1:4]
    return np.stack([optical[:, 2], -optical[:, 0], -optical[:, 1]], axis=1)
