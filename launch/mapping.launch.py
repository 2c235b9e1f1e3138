"""Starts the mapping node, and RViz or a bag if asked to. Arguments that are not given leave the value of the parameter file as it is."""

import os

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction, SetEnvironmentVariable
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

PACKAGE = 'lingbot_map'
DDS_PROFILES = 'FASTRTPS_DEFAULT_PROFILES_FILE'

# Launch arguments that are parameters of the node under the same name.
NODE_PARAMETERS = {
    'image_topic': 'Topic of the camera images.',
    'image_transport': 'raw or compressed.',
    'camera_info_topic': 'Topic of the calibration; without it camera_info beside the images.',
    'model': 'Exported model folder or checkpoint file.',
    'provider': 'auto, cpu, cuda or tensorrt.',
    'output_dir': 'Folder for saved maps.',
}


def share(*parts):
    return PathJoinSubstitution([FindPackageShare(PACKAGE), *parts])


# Topics that config/mapping.rviz names in full.
SHOWN_TOPICS = ('map', 'points', 'path', 'pose', 'keyframes', 'depth/image')


def is_set(text):
    return text.lower() in ('true', '1')


def processes(context):
    def value(name):
        return LaunchConfiguration(name).perform(context)

    namespace = value('namespace').strip('/')
    given = {name: value(name) for name in NODE_PARAMETERS if value(name)}
    # A bag brings its own time.
    sim_time = {'use_sim_time': is_set(value('use_sim_time')) or bool(value('bag'))}
    started = [
        Node(
            package=PACKAGE,
            executable='mapping_node',
            name=PACKAGE,
            namespace=namespace,
            parameters=[value('params_file'), {**given, **sim_time}],
            arguments=['--ros-args', '--log-level', value('log_level')],
            output='screen',
        )
    ]
    if is_set(value('rviz')):
        prefix = f'/{namespace}' if namespace else ''
        remappings = [(f'/{PACKAGE}/{topic}', f'{prefix}/{PACKAGE}/{topic}') for topic in SHOWN_TOPICS] if prefix else []
        if value('image_topic'):
            remappings.append(('/image', value('image_topic')))
        started.append(
            Node(
                package='rviz2',
                executable='rviz2',
                name='rviz2',
                namespace=namespace,
                parameters=[sim_time],
                remappings=remappings,
                arguments=['-d', share('config', 'mapping.rviz')],
            )
        )
    if value('bag'):
        started.append(ExecuteProcess(cmd=['ros2', 'bag', 'play', value('bag'), '--clock'], output='screen'))
    return started


def generate_launch_description():
    arguments = [
        DeclareLaunchArgument(name, default_value='', description=description)
        for name, description in NODE_PARAMETERS.items()
    ]
    arguments += [
        DeclareLaunchArgument(
            'params_file',
            default_value=share('config', 'mapping.yaml'),
            description='Parameter file of the node.',
        ),
        DeclareLaunchArgument('use_sim_time', default_value='false', description='Time from /clock.'),
        DeclareLaunchArgument('rviz', default_value='false', description='Start RViz on the map (needs rviz2).'),
        DeclareLaunchArgument('bag', default_value='', description='Bag to play, with its clock (needs ros2bag).'),
        DeclareLaunchArgument('namespace', default_value='', description='Namespace of the node.'),
        DeclareLaunchArgument('log_level', default_value='info', description='debug, info, warn or error.'),
    ]
    # Large messages need a larger shared-memory segment than Fast DDS makes by itself. A profile of the user's stays.
    environment = []
    if DDS_PROFILES not in os.environ:
        environment.append(SetEnvironmentVariable(DDS_PROFILES, share('config', 'fastdds.xml')))
    return LaunchDescription([*arguments, *environment, OpaqueFunction(function=processes)])
