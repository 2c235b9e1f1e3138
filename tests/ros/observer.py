"""A ROS node that plays the camera and keeps everything that the mapping node publishes."""

import time

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry, Path
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy, qos_profile_sensor_data
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, PointCloud2
from std_srvs.srv import Trigger
from tf2_msgs.msg import TFMessage

NODE = '/lingbot_map'


def nanoseconds(stamp):
    return stamp.sec * 1_000_000_000 + stamp.nanosec


class Observer:
    def __init__(self):
        self.node = rclpy.create_node('observer')
        self.received = {}
        latched = QoSProfile(
            depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
        )
        every = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
        for name, kind, topic, qos in [
            ('map', PointCloud2, f'{NODE}/map', latched),
            ('path', Path, f'{NODE}/path', latched),
            ('pose', PoseStamped, f'{NODE}/pose', every),
            ('odometry', Odometry, f'{NODE}/odometry', every),
            ('tf', TFMessage, '/tf', every),
            ('diagnostics', DiagnosticArray, '/diagnostics', every),
        ]:
            self.received[name] = []
            self.node.create_subscription(kind, topic, self.received[name].append, qos)
        self.every = every
        self.raw = self.node.create_publisher(Image, '/image', qos_profile_sensor_data)
        self.info = self.node.create_publisher(CameraInfo, '/camera_info', qos_profile_sensor_data)
        self.compressed = self.node.create_publisher(CompressedImage, '/image/compressed', qos_profile_sensor_data)

    def listen(self, name, kind, topic, qos=None):
        """One more topic, whose messages are kept under a name."""
        self.received[name] = []
        return self.node.create_subscription(kind, topic, self.received[name].append, qos or self.every)

    def close(self):
        self.node.destroy_node()

    def __getitem__(self, name):
        return self.received[name]

    def wait_until(self, condition, timeout=60.0):
        """Spins until the condition holds; false when it did not in time."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if condition():
                return True
            rclpy.spin_once(self.node, timeout_sec=0.05)
        return bool(condition())

    def spin(self, seconds):
        self.wait_until(lambda: False, timeout=seconds)

    def figures(self):
        """The values of the newest diagnostics, by key; empty before the first."""
        for array in reversed(self['diagnostics']):
            for status in array.status:
                if status.name == f'{NODE[1:]}: mapping':
                    return {pair.key: pair.value for pair in status.values}
        return {}

    def count(self, key):
        return int(self.figures().get(key, 0))

    def wait_until_ready(self, process, timeout=120.0, publishers=None):
        """Waits until the node has its model and listens to one of the publishers, by default to ours."""
        publishers = publishers or (self.raw, self.compressed)

        def ready():
            assert process.is_running(), process.log()
            return self.figures().get('state', 'starting') != 'starting'

        assert self.wait_until(ready, timeout), process.log()
        listens = self.wait_until(lambda: any(p.get_subscription_count() for p in publishers), 10)
        assert listens, f'the node listens to none of our topics\n{process.log()}'

    def play(self, messages, publisher, period=0.1):
        for message in messages:
            publisher.publish(message)
            self.spin(period)

    def call(self, service, timeout=30.0, kind=Trigger, **fields):
        client = self.node.create_client(kind, f'{NODE}/{service}')
        assert client.wait_for_service(timeout_sec=timeout)
        future = client.call_async(kind.Request(**fields))
        assert self.wait_until(future.done, timeout)
        return future.result()
