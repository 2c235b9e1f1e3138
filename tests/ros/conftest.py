"""Fixtures of the running-node tests: a ROS domain of their own, an observer, and nodes that are always ended."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Before rclpy is loaded: nothing leaves this machine, and the domain is none that a robot beside us uses.
os.environ['ROS_DOMAIN_ID'] = str(100 + os.getpid() % 100)
if os.environ.get('ROS_DISTRO') == 'humble':
    os.environ['ROS_LOCALHOST_ONLY'] = '1'
else:
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
os.environ.setdefault('FASTRTPS_DEFAULT_PROFILES_FILE', str(ROOT / 'config' / 'fastdds.xml'))

import rclpy  # noqa: E402
from mapping_process import MappingProcess  # noqa: E402
from observer import Observer  # noqa: E402


@pytest.fixture(scope='session', autouse=True)
def exported_models(tmp_path_factory):
    """Checkpoints are exported into a cache of this run's own: one of an older build would hide a fault."""
    os.environ['XDG_CACHE_HOME'] = str(tmp_path_factory.mktemp('cache'))


@pytest.fixture(scope='session', autouse=True)
def ros():
    rclpy.init()
    yield
    rclpy.shutdown()


@pytest.fixture
def observer(ros):
    observer = Observer()
    yield observer
    observer.close()


@pytest.fixture
def start_node(tmp_path):
    """Starts a node: start_node(parameter=value, ...). Whatever a test leaves running is ended after it."""
    running = []

    def start(namespace='', **parameters):
        parameters.setdefault('model', str(ROOT / 'models' / 'demo' / 'weights.safetensors'))
        parameters.setdefault('provider', 'cpu')
        parameters.setdefault('image_topic', '/image')
        parameters.setdefault('output_dir', str(tmp_path / 'maps'))
        process = MappingProcess(tmp_path, parameters, namespace)
        running.append(process)
        return process

    yield start
    for process in running:
        process.stop()
