//! Points to pixels.

use image::{Rgb, RgbImage};

use super::BACKGROUND;
use super::scene::Scene;
use super::view::View;

/// Splats are a little larger than the points' spacing, so that surfaces close.
const OVERLAP: f32 = 1.4;
const LARGEST_SPLAT: f32 = 12.0;
/// Darkening of what lies behind its neighbours, and how far the neighbours are, pixels.
const SHADE: f32 = 6.0;
const SHADE_REACH: usize = 3;

struct Raster {
    width: usize,
    height: usize,
    /// Infinite where nothing is.
    depth: Vec<f32>,
    color: Vec<[u8; 3]>,
}

/// Draws the scene's points as small discs, nearer ones over farther ones, edges darkened by eye-dome lighting
/// (Boucheny 2009).
pub(super) fn points(scene: &Scene, view: &View, (width, height): (u32, u32)) -> RgbImage {
    let mut raster = Raster {
        width: width as usize,
        height: height as usize,
        depth: vec![f32::INFINITY; width as usize * height as usize],
        color: vec![BACKGROUND; width as usize * height as usize],
    };
    for point in scene.shown(|place| view.sight(place)) {
        if let Some(p) = view.project(&point.position) {
            let radius = (p.scale * scene.spacing * OVERLAP / 2.0).clamp(0.5, LARGEST_SPLAT);
            raster.splat(p.x, p.y, p.depth, radius, point.color);
        }
    }
    let depth_range = (scene.high - scene.low).norm();
    RgbImage::from_fn(width, height, |x, y| {
        raster.shaded(x as usize, y as usize, depth_range)
    })
}

impl Raster {
    fn splat(&mut self, x: f32, y: f32, depth: f32, radius: f32, color: [u8; 3]) {
        let columns = span(x, radius, self.width);
        for row in span(y, radius, self.height) {
            for column in columns.clone() {
                let (dx, dy) = (column as f32 + 0.5 - x, row as f32 + 0.5 - y);
                // Half a pixel more, so that the smallest splat hits a pixel's centre.
                if dx * dx + dy * dy > (radius + 0.5).powi(2) {
                    continue;
                }
                let at = row * self.width + column;
                if let (Some(old), Some(pixel)) = (self.depth.get_mut(at), self.color.get_mut(at))
                    && depth < *old
                {
                    *old = depth;
                    *pixel = color;
                }
            }
        }
    }

    fn at(&self, x: usize, y: usize) -> Option<f32> {
        if x >= self.width || y >= self.height {
            return None;
        }
        let depth = self.depth.get(y * self.width + x);
        depth.copied().filter(|depth| depth.is_finite())
    }

    fn shaded(&self, x: usize, y: usize, depth_range: f32) -> Rgb<u8> {
        let color = self
            .color
            .get(y * self.width + x)
            .copied()
            .unwrap_or(BACKGROUND);
        let Some(depth) = self.at(x, y) else {
            return Rgb(color);
        };
        let r = SHADE_REACH;
        let around = [
            (Some(x + r), Some(y)),
            (Some(x), Some(y + r)),
            (Some(x), y.checked_sub(r)),
            (x.checked_sub(r), Some(y)),
        ];
        let nearer = around.into_iter().filter_map(|(x, y)| self.at(x?, y?));
        let hidden: f32 = nearer.map(|n| (depth - n).max(0.0) / depth_range).sum();
        let light = (-SHADE * hidden).exp().max(0.35);
        Rgb(color.map(|c| (f32::from(c) * light) as u8))
    }
}

fn span(centre: f32, radius: f32, limit: usize) -> std::ops::Range<usize> {
    let first = (centre - radius - 0.5).floor().max(0.0);
    let end = (centre + radius + 1.5).floor().max(0.0);
    (first as usize).min(limit)..(end as usize).min(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_at_every_edge_are_shaded() {
        let (width, height) = (8, 6);
        let raster = Raster {
            width,
            height,
            depth: (0..width * height).map(|i| i as f32).collect(),
            color: vec![[200, 100, 50]; width * height],
        };
        for y in 0..height {
            for x in 0..width {
                assert!(raster.shaded(x, y, 10.0)[0] > 0, "{x} {y}");
            }
        }
        assert_eq!(raster.at(width, 0), None);
        assert_eq!(raster.at(0, height), None);
    }
}
