"""What is installed beside the executables."""

import pathlib
import xml.etree.ElementTree as ElementTree

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
DDS = {'dds': 'http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles'}


def test_the_rviz_view_shows_what_the_node_publishes():
    view = yaml.safe_load((ROOT / 'config' / 'mapping.rviz').read_text())['Visualization Manager']
    assert view['Global Options']['Fixed Frame'] == 'map'
    topics = {display['Topic']['Value'] for display in view['Displays'] if 'Topic' in display}
    assert topics == {'/lingbot_map/points', '/lingbot_map/path', '/lingbot_map/pose'}


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
