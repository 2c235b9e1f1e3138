//! The drawing itself.

use std::error::Error;
use std::ops::Range;

use image::{RgbImage, imageops};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, register_font};

use super::{Chart, PlotError, Series, Style, axis};

const FONT: &str = "DejaVu Sans";
const INK: RGBColor = RGBColor(40, 40, 40);
const GRID: RGBColor = RGBColor(222, 222, 222);
/// Pictures are drawn this many times larger and averaged, which smooths lines and letters.
const OVERSAMPLING: u32 = 3;
const SMALLEST: [u32; 2] = [320, 200];
const LARGEST: u32 = 8192;
/// So that differences, and what is computed of them, stay finite.
const FARTHEST: f64 = 1e30;

/// Lengths in pixels of the finished picture.
const TITLE: u32 = 46;
const X_LABELS: u32 = 52;
const Y_LABELS: u32 = 76;
const MARGIN: u32 = 20;
const TITLE_TEXT: u32 = 19;
const TEXT: u32 = 16;
/// Between the numbers of the two axes, about.
const BETWEEN_NUMBERS: [u32; 2] = [70, 40];

type Area<'a> = DrawingArea<BitMapBackend<'a>, Shift>;
type Result<T> = std::result::Result<T, PlotError>;

pub fn picture(charts: &[Chart], width: u32) -> Result<RgbImage> {
    let heights = charts.iter().map(|chart| chart.height);
    let height = heights.fold(0u32, u32::saturating_add);
    let [least_width, least_height] = SMALLEST;
    let fits = (least_width..=LARGEST).contains(&width)
        && height <= LARGEST
        && charts.iter().all(|chart| chart.height >= least_height);
    if !fits {
        return Err(PlotError::Size { width, height });
    }
    register_font(FONT, FontStyle::Normal, dejavu::sans::regular())
        .map_err(|_| PlotError::Draw("its font cannot be read".to_owned()))?;
    let mut large = RgbImage::new(width * OVERSAMPLING, height * OVERSAMPLING);
    let size = large.dimensions();
    {
        let mut rest = BitMapBackend::with_buffer(&mut large, size).into_drawing_area();
        rest.fill(&WHITE).map_err(fault)?;
        for chart in charts {
            let (area, below) = rest.split_vertically(chart.height * OVERSAMPLING);
            chart_in(&area, chart)?;
            rest = below;
        }
        rest.present().map_err(fault)?;
    }
    Ok(imageops::thumbnail(&large, width, height))
}

fn fault<E: Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> PlotError {
    PlotError::Draw(error.to_string())
}

/// Pixels of the large picture.
fn px(length: u32) -> i32 {
    (length * OVERSAMPLING) as i32
}

fn text_style(size: u32, horizontal: HPos, vertical: VPos) -> TextStyle<'static> {
    let style = TextStyle::from((FONT, px(size)).into_font()).color(&INK);
    style.pos(Pos::new(horizontal, vertical))
}

fn chart_in(area: &Area, chart: &Chart) -> Result<()> {
    let (title, plot) = area.split_vertically(px(TITLE));
    let middle = px(TITLE) / 2;
    let style = text_style(TITLE_TEXT, HPos::Left, VPos::Center);
    let left = px(MARGIN + Y_LABELS);
    title
        .draw_text(&chart.title, &style, (left, middle))
        .map_err(fault)?;
    legend(&title, &chart.series)?;

    let (width, height) = plot.dim_in_pixel();
    let inner = [
        width as i32 - px(2 * MARGIN + Y_LABELS),
        height as i32 - px(X_LABELS),
    ];
    let [x, y] = ranges(chart, inner.map(f64::from));
    let mut context = ChartBuilder::on(&plot)
        .margin_left(px(MARGIN))
        .margin_right(px(MARGIN))
        .x_label_area_size(px(X_LABELS))
        .y_label_area_size(px(Y_LABELS))
        .build_cartesian_2d(x.clone(), y.clone())
        .map_err(fault)?;
    let numbers = |length: i32, between: u32| (length / px(between)).max(2) as usize;
    let ([width, height], [across, up]) = (inner, BETWEEN_NUMBERS);
    let (x_numbers, y_numbers) = (numbers(width, across), numbers(height, up));
    let x_decimals = axis::decimals(&x, x_numbers);
    let y_decimals = axis::decimals(&y, y_numbers);
    context
        .configure_mesh()
        .x_labels(x_numbers)
        .y_labels(y_numbers)
        .max_light_lines(0)
        .bold_line_style(ShapeStyle::from(&GRID).stroke_width(OVERSAMPLING))
        .axis_style(ShapeStyle::from(&INK).stroke_width(OVERSAMPLING))
        .label_style((FONT, px(TEXT - 2)).into_font().color(&INK))
        .axis_desc_style((FONT, px(TEXT)).into_font().color(&INK))
        .x_label_formatter(&|value| axis::number(*value, x_decimals))
        .y_label_formatter(&|value| axis::number(*value, y_decimals))
        .x_desc(&chart.x_label)
        .y_desc(&chart.y_label)
        .draw()
        .map_err(fault)?;
    for series in &chart.series {
        let points: Vec<_> = drawable(series).collect();
        let fill = RGBColor::from(series.colour).filled();
        let radius = match series.style {
            Style::Line(width) => {
                // One by one, and with discs where they meet: a whole line is drawn with corners that are far too long
                // where it turns back.
                let style = fill.stroke_width(width * OVERSAMPLING);
                let segments = points.windows(2);
                context
                    .draw_series(segments.map(|ends| PathElement::new(ends, style)))
                    .map_err(fault)?;
                px(width) / 2
            }
            Style::Dots(radius) => px(radius),
        };
        let dots = points.iter().map(|at| Circle::new(*at, radius, fill));
        context.draw_series(dots).map_err(fault)?;
    }
    Ok(())
}

fn drawable(series: &Series) -> impl Iterator<Item = (f64, f64)> {
    let points = series.points.iter();
    points
        .filter(|point| point.iter().all(|value| value.abs() < FARTHEST))
        .map(|[x, y]| (*x, *y))
}

/// What the axes show.
fn ranges(chart: &Chart, pixels: [f64; 2]) -> [Range<f64>; 2] {
    let points = || chart.series.iter().flat_map(drawable);
    let x = axis::extent(points().map(|(x, _)| x));
    let y = axis::extent(points().map(|(_, y)| y));
    if chart.equal_axes {
        axis::equal(&x, &y, pixels)
    } else {
        [axis::padded(&x), axis::from_zero(&y)]
    }
}

/// Names the series from the right end of the title's line.
fn legend(area: &Area, series: &[Series]) -> Result<()> {
    const SWATCH: u32 = 28;
    const GAP: u32 = 8;
    const BETWEEN: u32 = 24;
    let middle = px(TITLE) / 2;
    let style = text_style(TEXT, HPos::Left, VPos::Center);
    let mut right = area.dim_in_pixel().0 as i32 - px(MARGIN);
    for series in series.iter().rev() {
        let Some(label) = &series.label else {
            continue;
        };
        let (width, _) = area.estimate_text_size(label, &style).map_err(fault)?;
        let text = right - width as i32;
        area.draw_text(label, &style, (text, middle))
            .map_err(fault)?;
        let (from, to) = (text - px(GAP + SWATCH), text - px(GAP));
        let colour = RGBColor::from(series.colour);
        match series.style {
            Style::Line(width) => area.draw(&PathElement::new(
                [(from, middle), (to, middle)],
                colour.stroke_width(width * OVERSAMPLING),
            )),
            Style::Dots(radius) => area.draw(&Circle::new(
                (to - px(radius), middle),
                px(radius),
                colour.filled(),
            )),
        }
        .map_err(fault)?;
        right = from - px(BETWEEN);
    }
    Ok(())
}
