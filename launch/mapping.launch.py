"""Starts the mapping node. Arguments that are not given leave the value of the parameter file as it is."""

import os

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetEnvironmentVariable
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


def mapping_node(context):
    def value(name):
        return LaunchConfiguration(name).perform(context)

    given = {name: value(name) for name in NODE_PARAMETERS if value(name)}
    given['use_sim_time'] = value('use_sim_time').lower() in ('true', '1')
    return [
        Node(
            package=PACKAGE,
            executable='mapping_node',
            name=PACKAGE,
            namespace=value('namespace'),
            parameters=[value('params_file'), given],
            arguments=['--ros-args', '--log-level', value('log_level')],
            output='screen',
        )
    ]


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
        DeclareLaunchArgument('namespace', default_value='', description='Namespace of the node.'),
        DeclareLaunchArgument('log_level', default_value='info', description='debug, info, warn or error.'),
    ]
    # Large messages need a larger shared-memory segment than Fast DDS makes by itself. A profile of the user's stays.
    environment = []
    if DDS_PROFILES not in os.environ:
        environment.append(SetEnvironmentVariable(DDS_PROFILES, share('config', 'fastdds.xml')))
    return LaunchDescription([*arguments, *environment, OpaqueFunction(function=mapping_node)])
