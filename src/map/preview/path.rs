//! The camera's path in a view.

use super::canvas::{Canvas, Rgb888};
use super::scene::Scene;
use super::view::View;

const LINE: Rgb888 = Rgb888::new(255, 255, 255);
const OUTLINE: Rgb888 = Rgb888::new(16, 16, 16);
pub(super) const START: Rgb888 = Rgb888::new(40, 200, 80);
pub(super) const END: Rgb888 = Rgb888::new(230, 50, 50);

/// A white line with a dark edge over whatever it crosses, a green mark at its start and a red one at its end.
pub(super) fn draw(canvas: &mut Canvas, scene: &Scene, view: &View) {
    let places: Vec<Option<(i32, i32)>> = scene
        .path
        .iter()
        .map(|place| {
            let p = view.project(place)?;
            Some((p.x.round() as i32, p.y.round() as i32))
        })
        .collect();
    let width = (canvas.image_mut().width() / 320).clamp(2, 12);
    for (color, width) in [(OUTLINE, width * 2), (LINE, width)] {
        for pair in places.windows(2) {
            if let [Some(from), Some(to)] = *pair {
                canvas.line(from, to, width, color);
            }
        }
    }
    for (place, color) in [(places.last(), END), (places.first(), START)] {
        if let Some(Some(place)) = place {
            canvas.disc(*place, width * 5, OUTLINE);
            canvas.disc(*place, width * 4, color);
        }
    }
}
