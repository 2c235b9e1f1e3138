//! Where somebody walks: a smooth curve through the free part of the room.

use std::collections::VecDeque;

use nalgebra::Point2;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use super::room::Room;
use super::walk::uniform;

/// The camera's position keeps so far from walls and furniture, metres.
pub(super) const CLEARANCE: f64 = 0.4;
/// What the path of a hand keeps beyond that: its jitter.
const MARGIN: f64 = 0.01;
/// How many of the last places a new one keeps away from.
const REMEMBERED: usize = 6;
/// How many places are looked at before the one farthest from the last ones is taken, and at most to find a free one.
const CANDIDATES: usize = 6;
const ATTEMPTS: usize = 400;

/// A smooth curve between random places: parabolas from the middle of one leg to the middle of the next (a quadratic
/// B-spline), each of which was found free.
pub(super) struct Path<'a> {
    room: &'a Room,
    rng: Pcg32,
    /// What the present parabola bends around: it goes from the middle of the first leg to the middle of the second.
    corners: [Point2<f64>; 3],
    /// The last places that were chosen, the newest at the end.
    recent: VecDeque<Point2<f64>>,
    /// Where on it, 0 to 1.
    t: f64,
}

impl<'a> Path<'a> {
    pub fn new(room: &'a Room, rng: &mut Pcg32) -> Self {
        let mut path = Self {
            room,
            rng: Pcg32::seed_from_u64(rng.next_u64()),
            corners: [Point2::origin(); 3],
            recent: VecDeque::new(),
            t: 0.0,
        };
        let mut start = path.draw();
        while !path.is_free(start) {
            start = path.draw();
        }
        path.corners = [start; 3];
        path.recent.push_back(start);
        path.extend();
        path
    }

    fn draw(&mut self) -> Point2<f64> {
        let (centre, half) = (self.room.shell.centre(), self.room.shell.half());
        let mut along = |axis: usize| {
            uniform(
                &mut self.rng,
                centre[axis] - half[axis],
                centre[axis] + half[axis],
            )
        };
        Point2::new(along(0), along(1))
    }

    fn is_free(&self, place: Point2<f64>) -> bool {
        self.room.clearance(place.x, place.y) >= CLEARANCE + MARGIN
    }

    /// Chooses the next place such that the parabola towards it and the leg to it are free.
    fn extend(&mut self) {
        let [_, before, over] = self.corners;
        let from = nalgebra::center(&before, &over);
        let mut best: Option<(f64, Point2<f64>)> = None;
        let mut found = 0;
        for _ in 0..ATTEMPTS {
            let to = self.draw();
            let curve = Parabola {
                from,
                over,
                to: nalgebra::center(&over, &to),
            };
            let leg = Parabola {
                from: over,
                over: nalgebra::center(&over, &to),
                to,
            };
            if ![curve, leg]
                .iter()
                .all(|c| c.points().all(|p| self.is_free(p)))
            {
                continue;
            }
            let apart = (self.recent.iter())
                .map(|place| (place - to).norm())
                .fold(f64::INFINITY, f64::min);
            if best.is_none_or(|(distance, _)| apart > distance) {
                best = Some((apart, to));
            }
            found += 1;
            if found == CANDIDATES {
                break;
            }
        }
        // Without one, straight on to the place itself, which is free as the last leg was.
        let next = best.map_or(over, |(_, place)| place);
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(next);
        self.corners = [before, over, next];
        self.t = 0.0;
    }

    fn parabola(&self) -> Parabola {
        let [a, b, c] = self.corners;
        Parabola {
            from: nalgebra::center(&a, &b),
            over: b,
            to: nalgebra::center(&b, &c),
        }
    }

    pub fn position(&self) -> Point2<f64> {
        self.parabola().at(self.t)
    }

    /// Moves on until the position is `step` away from where it was.
    pub fn advance(&mut self, step: f64) {
        let start = self.position();
        let distance = |curve: &Parabola, t: f64| (curve.at(t) - start).norm();
        while distance(&self.parabola(), 1.0) < step {
            self.extend();
        }
        let curve = self.parabola();
        let (mut low, mut high) = (self.t, 1.0);
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            if distance(&curve, middle) < step {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.t = high;
    }
}

struct Parabola {
    from: Point2<f64>,
    over: Point2<f64>,
    to: Point2<f64>,
}

impl Parabola {
    fn at(&self, t: f64) -> Point2<f64> {
        let s = 1.0 - t;
        let coords =
            s * s * self.from.coords + 2.0 * s * t * self.over.coords + t * t * self.to.coords;
        Point2::from(coords)
    }

    /// Points along the curve, at most some centimetres apart.
    fn points(&self) -> impl Iterator<Item = Point2<f64>> + '_ {
        let length = (self.over - self.from).norm() + (self.to - self.over).norm();
        let count = (length / 0.03).ceil().max(1.0);
        (0..=count as usize).map(move |i| self.at(i as f64 / count))
    }
}
