use super::*;
use crate::plot::axis::{decimals, equal, extent, from_zero, number, padded};

fn chart(points: Vec<[f64; 2]>) -> Chart {
    Chart {
        title: "a title".to_owned(),
        x_label: "time (s)".to_owned(),
        y_label: "error (m)".to_owned(),
        series: vec![Series {
            label: Some("a path".to_owned()),
            colour: BLUE,
            style: Style::Line(2),
            points,
        }],
        equal_axes: false,
        height: 300,
    }
}

fn blue_columns(picture: &RgbImage) -> Vec<u32> {
    // Below the legend.
    let pixels = picture.enumerate_pixels().filter(|(_, y, _)| *y > 50);
    let blue = pixels.filter(|(.., p)| p.0 == [BLUE.0, BLUE.1, BLUE.2]);
    let mut columns: Vec<_> = blue.map(|(x, ..)| x).collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

#[test]
fn a_line_crosses_the_chart_and_everything_has_ink() {
    let picture = draw(&[chart(vec![[0.0, 1.0], [9.0, 2.0]])], 640).unwrap();
    assert_eq!(picture.dimensions(), (640, 300));
    let columns = blue_columns(&picture);
    assert!(columns.len() > 450, "{}", columns.len());
    let dark = |xs: std::ops::Range<u32>, ys: std::ops::Range<u32>| {
        xs.flat_map(|x| ys.clone().map(move |y| (x, y)))
            .filter(|(x, y)| picture.get_pixel(*x, *y).0.iter().all(|c| *c < 110))
            .count()
    };
    // Title, the axes' names, and their numbers.
    assert!(dark(96..300, 5..45) > 40);
    assert!(dark(200..500, 270..300) > 40);
    assert!(dark(0..45, 50..240) > 40);
    assert!(dark(45..92, 50..240) > 20);
}

#[test]
fn charts_without_extent_and_numbers_that_are_none_are_drawn() {
    for points in [
        vec![],
        vec![[3.0, 5.0]],
        vec![[f64::NAN, 1.0], [0.0, f64::INFINITY]],
        vec![[1e12, 1e12], [1e12, 1e12]],
        vec![[-1e-12, -1e-12], [1e-12, 0.0]],
        vec![[-9e29, 9e29], [9e29, -9e29]],
        vec![[-1e308, 1e308], [1e308, -1e308], [1.0, 2.0]],
    ] {
        for equal_axes in [false, true] {
            let chart = Chart {
                equal_axes,
                ..chart(points.clone())
            };
            draw(&[chart.clone(), chart], 400).unwrap();
        }
    }
}

#[test]
fn sizes_that_cannot_be_drawn_are_refused() {
    let flat = Chart {
        height: 50,
        ..chart(vec![])
    };
    let huge = Chart {
        height: u32::MAX,
        ..chart(vec![])
    };
    for (charts, width) in [
        (vec![flat], 640),
        (vec![huge.clone(), huge], 640),
        (vec![chart(vec![])], 0),
        (vec![chart(vec![])], 100_000),
    ] {
        assert!(matches!(draw(&charts, width), Err(PlotError::Size { .. })));
    }
}

#[test]
fn axes_show_all_values_and_equal_ones_the_same_lengths() {
    let x = extent([4.0, -1.0, 2.0].into_iter());
    assert_eq!(x, -1.0..4.0);
    assert_eq!(extent(std::iter::empty()), 0.0..0.0);
    assert!((padded(&x).start + 1.25).abs() < 1e-12 && (padded(&x).end - 4.25).abs() < 1e-12);
    assert!(from_zero(&x).start < -1.0);
    assert_eq!(from_zero(&(2.0..4.0)).start, 0.0);
    let [x, y] = equal(&(0.0..8.0), &(5.0..6.0), [800.0, 400.0]);
    assert!(x.start < 0.0 && x.end > 8.0 && y.start < 5.0 && y.end > 6.0);
    let (across, up) = (x.end - x.start, y.end - y.start);
    assert!((across / 800.0 - up / 400.0).abs() < 1e-12);
}

#[test]
fn numbers_have_the_digits_that_tell_them_apart() {
    for (range, count, value, expected) in [
        (0.0..10.0, 12, 3.0, "3"),
        (0.0..2.0, 5, 0.5, "0.5"),
        (0.0..8.0, 12, 3.0, "3"),
        (0.0..0.05, 6, 0.01, "0.01"),
        (-1.0..1.0, 10, -0.01, "0.0"),
        (-500.0..1000.0, 4, -500.0, "-500"),
    ] {
        let decimals = decimals(&range, count);
        assert_eq!(number(value, decimals), expected, "{range:?}");
    }
}
