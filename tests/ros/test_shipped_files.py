"""What is installed beside the executables."""

import json
import pathlib
import xml.etree.ElementTree as ElementTree

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
DDS = {'dds': 'http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles'}


def test_the_rviz_view_shows_what_the_node_publishes():
    view = yaml.safe_load((ROOT / 'config' / 'mapping.rviz').read_text())['Visualization Manager']
    assert view['Global Options']['Fixed Frame'] == 'map'
    topics = {display['Topic']['Value'] for display in view['Displays'] if 'Topic' in display}
    assert topics == {f'/lingbot_map/{name}' for name in ('map', 'points', 'path', 'pose', 'keyframes', 'depth/image')} | {'/image'}


def test_the_foxglove_layout_shows_what_rviz_shows():
    layout = json.loads((ROOT / 'config' / 'foxglove.json').read_text())
    panels = layout['configById']

    def leaves(node):
        return [node] if isinstance(node, str) else leaves(node['first']) + leaves(node['second'])

    assert set(leaves(layout['layout'])) == set(panels)
    shown = set(panels['3D!map']['topics']) | {panels[f'Image!{name}']['imageMode']['imageTopic'] for name in ('camera', 'depth')}
    assert shown == {f'/lingbot_map/{name}' for name in ('map', 'points', 'path', 'pose', 'keyframes', 'depth/image')} | {'/image'}


def test_the_dds_profile_replaces_the_small_segment():
    profile = ElementTree.parse(ROOT / 'config' / 'fastdds.xml')
    assert int(profile.find('.//dds:segment_size', DDS).text) >= 16 << 20
    assert profile.find('.//dds:useBuiltinTransports', DDS).text == 'false'
    described = {entry.find('dds:transport_id', DDS).text for entry in profile.iterfind('.//dds:transport_descriptor', DDS)}
    used = {entry.text for entry in profile.iterfind('.//dds:userTransports/dds:transport_id', DDS)}
    assert used == described


def test_package_and_crate_agree():
    package = ElementTree.parse(ROOT / 'package.xml')
    crate = (ROOT / 'Cargo.toml').read_text()
    for entry in ('name', 'version', 'license'):
        assert f'{entry} = "{package.find(entry).text}"' in crate
