"""The launch file: its description against the names of the launch API, and for real where something can run it."""

import glob
import importlib.util
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import types

import pytest

from mapping_process import EXECUTABLE
from observer import NODE
from walk import raw_walk

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAUNCH_FILE = ROOT / 'launch' / 'mapping.launch.py'
ARGUMENTS = {
    'image_topic', 'image_transport', 'camera_info_topic', 'model', 'provider', 'params_file', 'use_sim_time', 'namespace', 'log_level', 'output_dir', 'rviz', 'bag'
}  # fmt: skip


class Recorded:
    """Stands for a class of the launch API and keeps what it was made with."""

    accepted = ()

    def __init__(self, *args, **kwargs):
        unknown = set(kwargs) - set(self.accepted)
        assert not unknown, f'{type(self).__name__} has no {unknown}'
        self.args, self.kwargs = args, kwargs


def recorded(name, *accepted):
    return type(name, (Recorded,), {'accepted': accepted})


class LaunchConfiguration(Recorded):
    def perform(self, context):
        return context[self.args[0]]


@pytest.fixture
def description(monkeypatch):
    """The launch file loaded against stand-ins that have the names and arguments of launch and launch_ros."""
    node = recorded('Node', 'package', 'executable', 'name', 'namespace', 'parameters', 'arguments', 'output', 'remappings')
    modules = {
        'launch': {'LaunchDescription': recorded('LaunchDescription')},
        'launch.actions': {
            'DeclareLaunchArgument': recorded('DeclareLaunchArgument', 'default_value', 'description', 'choices'),
            'ExecuteProcess': recorded('ExecuteProcess', 'cmd', 'output'),
            'OpaqueFunction': recorded('OpaqueFunction', 'function', 'args', 'kwargs'),
            'SetEnvironmentVariable': recorded('SetEnvironmentVariable', 'name', 'value'),
        },
        'launch.substitutions': {
            'LaunchConfiguration': LaunchConfiguration,
            'PathJoinSubstitution': recorded('PathJoinSubstitution'),
        },
        'launch_ros': {},
        'launch_ros.actions': {'Node': node},
        'launch_ros.substitutions': {'FindPackageShare': recorded('FindPackageShare')},
    }
    for name, members in modules.items():
        module = types.ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delenv('FASTRTPS_DEFAULT_PROFILES_FILE', raising=False)
    spec = importlib.util.spec_from_file_location('mapping_launch', LAUNCH_FILE)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, 'dont_write_bytecode', True)
    spec.loader.exec_module(module)
    return module.generate_launch_description().args[0]


def of_kind(description, kind):
    return [entity for entity in description if type(entity).__name__ == kind]


def test_the_description_declares_its_arguments(description):
    declared = {entity.args[0]: entity.kwargs for entity in of_kind(description, 'DeclareLaunchArgument')}
    assert set(declared) == ARGUMENTS
    assert all(kwargs['description'] and 'default_value' in kwargs for kwargs in declared.values())
    variables = [entity.args[0] for entity in of_kind(description, 'SetEnvironmentVariable')]
    assert variables == ['FASTRTPS_DEFAULT_PROFILES_FILE']


def test_the_documented_arguments_are_those_declared(description):
    text = (ROOT / 'docs' / 'ros.md').read_text()
    section = re.search(r'^## Launch arguments\n(.*?)^## ', text, re.S | re.M).group(1)
    assert set(re.findall(r'^\| `(\w+)`', section, re.M)) == {
        entity.args[0] for entity in of_kind(description, 'DeclareLaunchArgument')
    }


def test_only_what_is_given_overrides_the_parameter_file(description):
    (opaque,) = of_kind(description, 'OpaqueFunction')
    context = dict.fromkeys(ARGUMENTS, '')
    context.update(image_topic='/cam', params_file='/p.yaml', use_sim_time='true', log_level='warn', namespace='front')
    (node,) = opaque.kwargs['function'](context)
    assert node.kwargs['package'] == 'lingbot_map' and node.kwargs['executable'] == 'mapping_node'
    assert node.kwargs['namespace'] == 'front'
    assert node.kwargs['parameters'] == ['/p.yaml', {'image_topic': '/cam', 'use_sim_time': True}]
    assert node.kwargs['arguments'] == ['--ros-args', '--log-level', 'warn']


def test_rviz_and_a_bag_come_along_when_asked_for(description):
    (opaque,) = of_kind(description, 'OpaqueFunction')
    context = dict.fromkeys(ARGUMENTS, '')
    context.update(image_topic='/cam', params_file='/p.yaml', namespace='/front', rviz='true', bag='/walk.mcap')
    node, rviz, bag = opaque.kwargs['function'](context)
    assert node.kwargs['parameters'][1]['use_sim_time'] is True and rviz.kwargs['parameters'] == [{'use_sim_time': True}]
    remapped = dict(rviz.kwargs['remappings'])
    assert remapped['/lingbot_map/map'] == '/front/lingbot_map/map' and remapped['/image'] == '/cam'
    view = (ROOT / 'config' / 'mapping.rviz').read_text()
    assert all(f'Value: {topic}\n' in view for topic in remapped), 'topics that the view names'
    assert bag.kwargs['cmd'] == ['ros2', 'bag', 'play', '/walk.mcap', '--clock']


def library_folder(name):
    """The folder of a shared library that the loader or an installed Python has; None where there is none."""
    table = subprocess.run(['ldconfig', '-p'], capture_output=True, text=True, check=False).stdout
    if f'{name} ' in table:
        return ''
    pythons = os.path.join(os.environ.get('PYENV_ROOT', os.path.expanduser('~/.pyenv')), 'versions', '3.10*', 'lib')
    for folder in [*glob.glob(pythons), *glob.glob('/usr/local/lib'), *glob.glob('/opt/python*/lib')]:
        if os.path.exists(os.path.join(folder, name)):
            return folder
    return None


def launcher():
    """Command that runs a launch file, and what it needs in its environment; skips with the reason where none can."""
    if shutil.which('ros2') and importlib.util.find_spec('ros2launch'):
        return ['ros2', 'launch'], '', []
    program = shutil.which('play_launch') or pathlib.Path(sys.executable).parent / 'play_launch'
    if not os.path.exists(program):
        pytest.skip('neither ros2 launch nor play_launch is here')
    folders = []
    for library in ('libpython3.10.so.1.0', 'libz3.so.4'):
        folder = library_folder(library)
        if folder is None:
            pytest.skip(f'play_launch needs {library}, which was not found')
        folders.append(folder)
    return [str(program), 'launch'], ':'.join(filter(None, folders)), ['--disable-all']


@pytest.fixture
def installed(tmp_path):
    """The package as colcon installs it."""
    prefix = tmp_path / 'install'
    share = prefix / 'share' / 'lingbot_map'
    share.mkdir(parents=True)
    for folder in ('launch', 'config'):
        shutil.copytree(ROOT / folder, share / folder)
    shutil.copy(ROOT / 'package.xml', share)
    index = prefix / 'share' / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True)
    (index / 'lingbot_map').touch()
    (prefix / 'lib' / 'lingbot_map').mkdir(parents=True)
    (prefix / 'lib' / 'lingbot_map' / 'mapping_node').symlink_to(EXECUTABLE.resolve())
    return prefix


def test_the_launch_file_starts_a_node_that_maps(observer, installed, tmp_path):
    command, libraries, options = launcher()
    environment = dict(os.environ)
    environment['AMENT_PREFIX_PATH'] = f'{installed}:{environment["AMENT_PREFIX_PATH"]}'
    environment['LD_LIBRARY_PATH'] = ':'.join(filter(None, [environment.get('LD_LIBRARY_PATH'), libraries]))
    arguments = {
        'image_topic': '/image',
        'model': ROOT / 'models' / 'demo' / 'weights.safetensors',
        'provider': 'cpu',
        'output_dir': tmp_path / 'maps',
    }
    log_file = tmp_path / 'launch.log'
    with log_file.open('wb') as log:
        process = subprocess.Popen(
            [*command, 'lingbot_map', LAUNCH_FILE.name, *(f'{k}:={v}' for k, v in arguments.items()), *options],
            cwd=tmp_path,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        ready = observer.wait_until(lambda: observer.figures().get('state', 'starting') != 'starting', 120)
        assert ready, log_file.read_text(errors='replace')
        observer.play(raw_walk(range(10)), observer.raw)
        assert observer.wait_until(lambda: len(observer['pose']) >= 4, 20)
        assert observer.node.get_node_names().count(NODE[1:]) == 1
        saved = observer.call('save_map')
        assert saved.success and saved.message.startswith(str(tmp_path / 'maps'))
        process.send_signal(signal.SIGINT)
        process.wait(timeout=15)
        assert observer.wait_until(lambda: NODE[1:] not in observer.node.get_node_names(), 30), 'the node ends as well'
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
