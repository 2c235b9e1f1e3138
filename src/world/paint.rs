//! What surfaces look like before light falls on them.

use super::Colour;

/// How a surface is painted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finish {
    pub colour: Colour,
    pub accent: Colour,
    pub pattern: Pattern,
    /// How strongly colour noise lies over it.
    pub mural: f32,
    /// Shines by itself: light and shadow do not change it.
    pub glows: bool,
}

/// Lengths in metres.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pattern {
    Plain,
    /// Boards along u of this width.
    Boards(f32),
    /// Framed panels with a knob each: columns and rows.
    Panels(u8, u8),
    /// Spines of books that stand on the lower edge.
    Books,
    /// Stripes of this width along the direction (1, slope).
    Stripes {
        width: f32,
        slope: f32,
    },
    Checks(f32),
    /// Rings of this width around the middle.
    Rings(f32),
    /// Nested diamonds of this width, as a rug has them.
    Diamonds(f32),
    /// Hills below a sun.
    Landscape,
    /// Sky, grass and the bars of a window of so many columns and rows.
    Window(u8, u8),
}

impl Finish {
    pub fn new(colour: Colour, accent: Colour, pattern: Pattern) -> Self {
        Self {
            colour,
            accent,
            pattern,
            mural: 0.3,
            glows: false,
        }
    }

    pub fn mural(mut self, strength: f32) -> Self {
        self.mural = strength;
        self
    }

    pub fn glowing(mut self) -> Self {
        self.glows = true;
        self
    }

    /// The colour at (u, v) metres from the lower corner of a surface of `size`, `noise` being that of the place.
    pub fn at(&self, u: f32, v: f32, size: [f32; 2], noise: Colour) -> Colour {
        let plain = self.pattern_at(u, v, size);
        std::array::from_fn(|c| (plain[c] + self.mural * noise[c]).clamp(0.03, 1.0))
    }

    fn pattern_at(&self, u: f32, v: f32, [width, height]: [f32; 2]) -> Colour {
        let (x, y) = (u - width / 2.0, v - height / 2.0);
        match self.pattern {
            Pattern::Plain => self.colour,
            Pattern::Boards(board) => {
                let index = (v / board).floor();
                let gap = v - index * board < 0.015;
                let shade = 0.8 + 0.4 * random(index, 1.0);
                let wood = self.colour.map(|c| c * shade);
                if gap { self.accent } else { wood }
            }
            Pattern::Panels(columns, rows) => {
                let (w, h) = (width / f32::from(columns), height / f32::from(rows));
                let (u, v) = (u.rem_euclid(w), v.rem_euclid(h));
                let edge = u.min(w - u).min(v).min(h - v);
                let knob = (u - 0.85 * w).hypot(v - 0.5 * h) < 0.035;
                self.either(knob || (0.02..0.05).contains(&edge))
            }
            Pattern::Books => {
                let index = (u / 0.05).floor();
                let top = height * (0.7 + 0.28 * random(index, 2.0));
                let spine = hue(random(index, 3.0), 0.8, 0.4 + 0.6 * random(index, 4.0));
                let band = (0.6..0.75).contains(&(v / top));
                match (v < top, band) {
                    (false, _) => self.accent,
                    (true, true) => spine.map(|c| 1.0 - c),
                    (true, false) => spine,
                }
            }
            Pattern::Stripes { width, slope } => {
                self.alternate((slope * u - v) / (width * slope.hypot(1.0)))
            }
            Pattern::Checks(side) => self.alternate((u / side).floor() + (v / side).floor()),
            Pattern::Rings(ring) => self.alternate(x.hypot(y) / ring),
            Pattern::Diamonds(ring) => {
                let middle = self.alternate((x.abs() + y.abs()) / ring);
                let edge = u.min(width - u).min(v).min(height - v);
                match (edge / 0.12) as u32 {
                    0 => self.accent,
                    1 => self.colour,
                    _ => middle,
                }
            }
            Pattern::Landscape => {
                let (x, y) = (u / width, v / height);
                let near = 0.28 + 0.12 * (7.0 * x + 1.0).sin();
                let far = 0.5 + 0.14 * (11.0 * x).sin();
                let sun = ((u - 0.7 * width).hypot(v - 0.78 * height)) < 0.13 * width;
                if y < near {
                    self.accent.map(|c| 0.6 * c)
                } else if y < far {
                    self.accent
                } else if sun {
                    [1.0, 0.95, 0.4]
                } else {
                    self.colour
                }
            }
            Pattern::Window(columns, rows) => {
                let (w, h) = (width / f32::from(columns), height / f32::from(rows));
                let (within_u, within_v) = (u.rem_euclid(w), v.rem_euclid(h));
                let bar = within_u.min(w - within_u).min(within_v).min(h - within_v) < 0.035;
                let height = v / height;
                if bar {
                    self.accent
                } else if height < 0.25 + 0.06 * (5.0 * u).sin() {
                    [0.25, 0.6, 0.2]
                } else {
                    std::array::from_fn(|c| {
                        self.colour[c] + (1.0 - self.colour[c]) * (1.0 - height)
                    })
                }
            }
        }
    }

    fn either(&self, accent: bool) -> Colour {
        if accent { self.accent } else { self.colour }
    }

    fn alternate(&self, count: f32) -> Colour {
        self.either(count.floor().rem_euclid(2.0) > 0.5)
    }
}

/// The colour of a hue (0 to 1: red, yellow, green, cyan, blue, magenta, red), saturation and value.
pub(super) fn hue(hue: f32, saturation: f32, value: f32) -> Colour {
    [5.0, 3.0, 1.0].map(|shift| {
        let k = (shift + 6.0 * hue) % 6.0;
        value * (1.0 - saturation * k.min(4.0 - k).clamp(0.0, 1.0))
    })
}

/// A number from 0 to 1 that depends wildly on `index`.
fn random(index: f32, salt: f32) -> f32 {
    let mixed = (index * 127.1 + salt * 311.7).sin() * 43_758.547;
    mixed - mixed.floor()
}
