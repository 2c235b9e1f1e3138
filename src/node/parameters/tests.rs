use super::*;

#[test]
fn shipped_files_equal_the_table() {
    let root = env!("CARGO_MANIFEST_DIR");
    for (file, content) in [
        ("config/mapping.yaml", as_yaml()),
        ("docs/parameters.md", as_markdown()),
    ] {
        let shipped = std::fs::read_to_string(format!("{root}/{file}")).unwrap();
        assert_eq!(
            shipped, content,
            "{file} is old: make it anew as its first lines say"
        );
    }
}

#[test]
fn the_yaml_parses_back_to_the_defaults() {
    let yaml: serde_yaml::Value = serde_yaml::from_str(&as_yaml()).unwrap();
    let parameters = yaml["/**"]["ros__parameters"].as_mapping().unwrap();
    assert_eq!(parameters.len(), Parameters::table().len());
    assert_eq!(
        yaml["/**"]["ros__parameters"]["max_points"].as_i64(),
        Some(2_000_000)
    );
    assert_eq!(
        yaml["/**"]["ros__parameters"]["voxel_size"].as_f64(),
        Some(0.0)
    );
}

#[test]
fn an_integer_is_taken_for_a_number_but_not_the_reverse() {
    let mut parameters = Parameters::default();
    parameters
        .set("conf_threshold", &ParameterValue::Integer(2))
        .unwrap();
    assert_eq!(parameters.conf_threshold, 2.0);
    parameters
        .set(
            "camera_in_base",
            &ParameterValue::IntegerArray(vec![1, 0, 0, 0, 0, 0]),
        )
        .unwrap();
    assert_eq!(parameters.camera_in_base[0], 1.0);
    assert!(matches!(
        parameters.set("max_points", &ParameterValue::Double(2.0)),
        Err(ParameterError::Type {
            found: "a double",
            expected: "integer"
        })
    ));
}

#[test]
fn values_outside_the_range_are_refused_and_change_nothing() {
    let mut parameters = Parameters::default();
    for (name, value) in [
        ("provider", ParameterValue::String("gpu".into())),
        ("map_rate", ParameterValue::Double(f64::NAN)),
        ("map_rate", ParameterValue::Double(0.0)),
        ("map_frame", ParameterValue::String(" ".into())),
        ("map_formats", ParameterValue::String("pcd,stl".into())),
        ("max_points", ParameterValue::Integer(-1)),
        (
            "camera_in_base",
            ParameterValue::DoubleArray(vec![f64::INFINITY; 6]),
        ),
    ] {
        assert!(
            matches!(
                parameters.set(name, &value),
                Err(ParameterError::Range { .. })
            ),
            "{name}"
        );
    }
    assert!(
        parameters
            .set("camera_in_base", &ParameterValue::DoubleArray(vec![0.0; 5]))
            .is_err()
    );
    assert_eq!(
        parameters.set("map_rat", &ParameterValue::Double(1.0)),
        Err(ParameterError::Unknown {
            nearest: Some("map_rate")
        })
    );
    assert_eq!(parameters, Parameters::default());
}

#[test]
fn every_row_can_be_read_and_set() {
    let mut parameters = Parameters::default();
    for row in Parameters::table() {
        assert_eq!(parameters.get(row.name), Some(row.default.clone()));
        parameters.set(row.name, &row.default).unwrap();
    }
}

#[test]
fn frames_must_differ_and_sizes_be_whole() {
    assert_eq!(Parameters::default().check(), Ok(()));
    for (map, odom, base) in [
        ("odom", "odom", "base"),
        ("map", "/map", "base"),
        ("a", "b", " a"),
    ] {
        let parameters = Parameters {
            map_frame: map.into(),
            odom_frame: odom.into(),
            base_frame: base.into(),
            ..Default::default()
        };
        assert!(
            matches!(parameters.check(), Err(Conflict::SameFrame(..))),
            "{map} {odom} {base}"
        );
    }
    let half = Parameters {
        height: 84,
        ..Default::default()
    };
    assert_eq!(half.check(), Err(Conflict::HalfASize));
    let unknown = Parameters {
        scale_source: "camera_height".into(),
        ..Default::default()
    };
    assert_eq!(unknown.check(), Err(Conflict::NoCameraHeight));
}

#[test]
fn shipped_presets_are_values_that_the_node_takes() {
    for preset in ["gpu_8gb.yaml", "jetson.yaml"] {
        let path = format!("{}/config/{preset}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let yaml: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
        let mut parameters = Parameters::default();
        let given = yaml["/**"]["ros__parameters"].as_mapping().unwrap();
        for (name, value) in given {
            let value = match value {
                serde_yaml::Value::Bool(value) => ParameterValue::Bool(*value),
                serde_yaml::Value::String(value) => ParameterValue::String(value.clone()),
                serde_yaml::Value::Number(number) => match number.as_i64() {
                    Some(integer) => ParameterValue::Integer(integer),
                    None => ParameterValue::Double(number.as_f64().unwrap()),
                },
                _ => panic!("{preset}: {name:?}"),
            };
            let name = name.as_str().unwrap();
            let set = parameters.set(name, &value);
            assert_eq!(set, Ok(()), "{preset}: {name}");
        }
        assert_eq!(parameters.check(), Ok(()));
        assert_ne!(parameters, Parameters::default());
    }
}
