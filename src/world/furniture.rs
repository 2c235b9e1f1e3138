//! What stands in the room and hangs on its walls.

use super::paint::{Finish, Pattern, hue};
use super::room::Face;
use super::solid::Solid;

/// A picture, a door, a window or a rug: painted on a surface of the room.
pub(super) struct Decal {
    pub face: Face,
    /// Metres in the room's frame: along x (along y on the walls that face x) ...
    pub u: [f64; 2],
    /// ... and along z (along y on floor and ceiling).
    pub v: [f64; 2],
    pub finish: Finish,
}

/// The room itself: an empty box, seen from within.
pub(super) fn shell() -> Solid {
    Solid::span([-3.0, 3.0], [-2.5, 2.5], [0.0, 2.8])
}

/// The plain surface of the room behind the decals.
pub(super) fn wall(face: Face) -> Finish {
    let plain = |h, s, v, accent| Finish::new(hue(h, s, v), accent, Pattern::Plain).mural(0.38);
    match face {
        Face::West => plain(0.02, 0.6, 0.75, [0.0; 3]),
        Face::East => plain(0.37, 0.55, 0.62, [0.0; 3]),
        Face::South => plain(0.13, 0.65, 0.8, [0.0; 3]),
        Face::North => plain(0.6, 0.6, 0.72, [0.0; 3]),
        Face::Floor => Finish::new(
            hue(0.08, 0.6, 0.6),
            [0.15, 0.08, 0.04],
            Pattern::Boards(0.25),
        )
        .mural(0.36),
        Face::Ceiling => plain(0.8, 0.35, 0.75, [0.0; 3]),
    }
}

pub(super) fn decals() -> Vec<Decal> {
    let decal = |face, u, v, finish| Decal { face, u, v, finish };
    let white = [0.95, 0.95, 0.92];
    let stripes = |width, slope| Pattern::Stripes { width, slope };
    vec![
        // The rug, and a mat before the door.
        decal(
            Face::Floor,
            [-1.3, 1.3],
            [-0.9, 0.9],
            Finish::new(
                hue(0.97, 0.85, 0.65),
                hue(0.12, 0.8, 0.9),
                Pattern::Diamonds(0.22),
            ),
        ),
        decal(
            Face::Floor,
            [-2.85, -2.25],
            [0.6, 1.5],
            Finish::new(hue(0.45, 0.8, 0.45), hue(0.55, 0.3, 0.9), stripes(0.1, 0.0)),
        ),
        decal(
            Face::North,
            [-0.9, 1.1],
            [0.95, 2.25],
            Finish::new(hue(0.57, 0.75, 1.0), white, Pattern::Window(3, 2))
                .mural(0.14)
                .glowing(),
        ),
        decal(
            Face::West,
            [0.5, 1.6],
            [0.0, 2.15],
            Finish::new(white, white, Pattern::Plain).mural(0.1),
        ),
        decal(
            Face::West,
            [0.6, 1.5],
            [0.0, 2.05],
            Finish::new(
                hue(0.48, 0.9, 0.5),
                hue(0.13, 0.9, 0.95),
                Pattern::Panels(1, 3),
            )
            .mural(0.22),
        ),
        // Posters.
        decal(
            Face::North,
            [-2.3, -1.4],
            [1.0, 2.2],
            Finish::new(
                hue(0.93, 0.9, 0.95),
                hue(0.3, 0.9, 0.9),
                Pattern::Rings(0.11),
            ),
        ),
        decal(
            Face::North,
            [1.45, 2.2],
            [1.2, 2.3],
            Finish::new(
                hue(0.75, 0.8, 0.8),
                hue(0.17, 0.9, 1.0),
                Pattern::Checks(0.19),
            ),
        ),
        decal(
            Face::South,
            [-1.2, 0.0],
            [1.15, 2.05],
            Finish::new(
                hue(0.53, 0.55, 0.95),
                hue(0.33, 0.8, 0.5),
                Pattern::Landscape,
            )
            .mural(0.18),
        ),
        decal(
            Face::South,
            [0.35, 1.0],
            [1.2, 2.3],
            Finish::new(hue(0.0, 0.9, 0.85), white, stripes(0.14, 0.8)),
        ),
        decal(
            Face::South,
            [-2.4, -1.6],
            [1.5, 2.3],
            Finish::new(
                hue(0.66, 0.9, 0.75),
                hue(0.08, 0.9, 1.0),
                Pattern::Diamonds(0.14),
            ),
        ),
        decal(
            Face::South,
            [1.3, 2.1],
            [0.9, 1.9],
            Finish::new(
                hue(0.42, 0.9, 0.6),
                hue(0.88, 0.8, 1.0),
                Pattern::Rings(0.16),
            ),
        ),
        decal(
            Face::West,
            [-1.7, -0.7],
            [1.35, 2.2],
            Finish::new(hue(0.1, 0.8, 1.0), hue(0.78, 0.8, 0.5), Pattern::Landscape).mural(0.18),
        ),
        decal(
            Face::West,
            [-0.4, 0.25],
            [1.1, 2.0],
            Finish::new(
                hue(0.58, 0.9, 0.9),
                hue(0.15, 0.9, 1.0),
                stripes(0.12, -1.5),
            ),
        ),
        decal(
            Face::East,
            [-1.6, -0.6],
            [1.5, 2.3],
            Finish::new(hue(0.85, 0.85, 0.9), hue(0.5, 0.8, 0.9), stripes(0.13, 0.0)),
        ),
        decal(
            Face::East,
            [-0.4, 0.2],
            [1.0, 1.9],
            Finish::new(
                hue(0.05, 0.9, 1.0),
                hue(0.65, 0.9, 0.5),
                Pattern::Checks(0.15),
            ),
        ),
        // Painted panels of the ceiling.
        decal(
            Face::Ceiling,
            [-2.4, -1.1],
            [-1.9, 1.2],
            Finish::new(hue(0.5, 0.75, 0.8), hue(0.5, 0.2, 1.0), stripes(0.3, 1.0)),
        ),
        decal(
            Face::Ceiling,
            [1.3, 2.5],
            [-0.6, 2.0],
            Finish::new(
                hue(0.09, 0.8, 0.95),
                hue(0.97, 0.7, 0.7),
                Pattern::Rings(0.2),
            ),
        ),
    ]
}

/// All pieces of furniture with their finish. No two overlap.
pub(super) fn furniture() -> Vec<(Solid, Finish)> {
    [sofa(), table(), shelf(), storage(), crates(), columns()].concat()
}

/// Along the south wall.
fn sofa() -> Vec<(Solid, Finish)> {
    let cloth = Finish::new(hue(0.9, 0.7, 0.6), hue(0.9, 0.4, 0.9), Pattern::Plain);
    let seat = Finish::new(
        hue(0.93, 0.65, 0.75),
        hue(0.9, 0.9, 0.4),
        Pattern::Panels(3, 1),
    );
    let cushion = |h| {
        Finish::new(
            hue(h, 0.9, 0.9),
            hue(h + 0.3, 0.8, 0.8),
            Pattern::Checks(0.12),
        )
    };
    vec![
        (Solid::span([-1.1, 0.7], [-2.28, -1.72], [0.1, 0.42]), seat),
        (Solid::span([-1.1, 0.7], [-2.5, -2.28], [0.1, 0.85]), cloth),
        (Solid::span([-1.3, -1.1], [-2.5, -1.72], [0.0, 0.6]), cloth),
        (Solid::span([0.7, 0.9], [-2.5, -1.72], [0.0, 0.6]), cloth),
        (
            Solid::turned(-0.8, -2.08, 0.42, [0.36, 0.14, 0.34], 12.0),
            cushion(0.15),
        ),
        (
            Solid::turned(0.42, -2.06, 0.42, [0.34, 0.14, 0.32], -14.0),
            cushion(0.5),
        ),
    ]
}

/// A table with things on it, along the west wall.
fn table() -> Vec<(Solid, Finish)> {
    let wood = Finish::new(
        hue(0.07, 0.75, 0.55),
        hue(0.06, 0.9, 0.25),
        Pattern::Boards(0.12),
    );
    let leg = |x: f64, y: f64| {
        let legs = Finish::new(hue(0.6, 0.8, 0.5), [0.1; 3], Pattern::Plain);
        (Solid::span([x, x + 0.07], [y, y + 0.07], [0.0, 0.7]), legs)
    };
    let screen = Finish::new(hue(0.52, 0.9, 0.9), hue(0.83, 0.8, 0.9), Pattern::Landscape);
    let box_ = Finish::new(
        hue(0.3, 0.9, 0.8),
        hue(0.0, 0.9, 0.8),
        Pattern::Checks(0.08),
    );
    let jar = Finish::new(hue(0.98, 0.9, 0.85), [1.0; 3], Pattern::Boards(0.07));
    vec![
        (Solid::span([-3.0, -2.35], [-1.75, -0.4], [0.7, 0.76]), wood),
        leg(-2.98, -1.73),
        leg(-2.44, -1.73),
        leg(-2.98, -0.49),
        leg(-2.44, -0.49),
        (
            Solid::turned(-2.78, -1.1, 0.76, [0.1, 0.7, 0.42], 8.0),
            screen,
        ),
        (
            Solid::turned(-2.6, -0.58, 0.76, [0.22, 0.16, 0.2], 30.0),
            box_,
        ),
        (Solid::cylinder(-2.65, -1.6, 0.06, [0.76, 0.98]), jar),
    ]
}

/// A shelf with books, along the east wall.
fn shelf() -> Vec<(Solid, Finish)> {
    let board = Finish::new(hue(0.11, 0.6, 0.75), hue(0.1, 0.8, 0.4), Pattern::Plain);
    let back = Finish::new(hue(0.7, 0.7, 0.35), [0.1; 3], Pattern::Plain);
    let books = Finish::new([0.5; 3], hue(0.7, 0.7, 0.2), Pattern::Books).mural(0.12);
    let mut parts = vec![
        (Solid::span([2.65, 3.0], [0.35, 0.4], [0.0, 2.0]), board),
        (Solid::span([2.65, 3.0], [1.8, 1.85], [0.0, 2.0]), board),
        (Solid::span([2.96, 3.0], [0.4, 1.8], [0.0, 2.0]), back),
    ];
    for (level, books_to) in [(0.05, 1.75), (0.53, 1.2), (1.01, 1.6), (1.49, 1.0)] {
        parts.push((
            Solid::span([2.65, 2.96], [0.4, 1.8], [level, level + 0.04]),
            board,
        ));
        let height = [level + 0.04, level + 0.36];
        parts.push((Solid::span([2.74, 2.96], [0.42, books_to], height), books));
    }
    let globe = Finish::new(
        hue(0.55, 0.9, 0.9),
        hue(0.3, 0.8, 0.6),
        Pattern::Checks(0.1),
    );
    parts.push((Solid::cylinder(2.8, 1.45, 0.1, [1.53, 1.85]), globe));
    parts
}

/// A cabinet along the east wall and a sideboard below the window.
fn storage() -> Vec<(Solid, Finish)> {
    let cabinet = Finish::new(
        hue(0.77, 0.6, 0.6),
        hue(0.14, 0.9, 0.95),
        Pattern::Panels(2, 3),
    );
    let side = Finish::new(
        hue(0.04, 0.8, 0.85),
        hue(0.55, 0.7, 0.3),
        Pattern::Panels(4, 2),
    );
    let vase = Finish::new(
        hue(0.5, 0.9, 0.8),
        hue(0.08, 0.9, 1.0),
        Pattern::Boards(0.1),
    );
    let radio = Finish::new(
        hue(0.0, 0.85, 0.8),
        hue(0.1, 0.3, 1.0),
        Pattern::Rings(0.06),
    );
    vec![
        (Solid::span([2.55, 3.0], [-1.6, -0.6], [0.0, 1.15]), cabinet),
        (Solid::cylinder(2.78, -0.8, 0.1, [1.15, 1.45]), vase),
        (
            Solid::turned(2.77, -1.3, 1.15, [0.25, 0.42, 0.25], -10.0),
            radio,
        ),
        (Solid::span([-0.9, 1.1], [2.12, 2.5], [0.0, 0.68]), side),
        (
            Solid::turned(-0.6, 2.32, 0.68, [0.4, 0.2, 0.18], 6.0),
            Finish::new(
                hue(0.33, 0.8, 0.75),
                hue(0.9, 0.6, 0.9),
                Pattern::Checks(0.09),
            ),
        ),
    ]
}

/// Crates in the north-west corner and beside the shelf.
fn crates() -> Vec<(Solid, Finish)> {
    let planks = |h, accent| {
        Finish::new(
            hue(h, 0.65, 0.75),
            hue(accent, 0.8, 0.3),
            Pattern::Boards(0.13),
        )
    };
    vec![
        (
            Solid::turned(-2.6, 2.12, 0.0, [0.6, 0.55, 0.55], 10.0),
            planks(0.16, 0.1),
        ),
        (
            Solid::turned(-2.62, 2.14, 0.55, [0.45, 0.45, 0.4], -17.0),
            planks(0.4, 0.55),
        ),
        (
            Solid::turned(-1.85, 2.22, 0.0, [0.45, 0.4, 0.4], -8.0),
            planks(0.95, 0.7),
        ),
        (
            Solid::turned(1.6, -2.2, 0.0, [0.5, 0.45, 0.5], 15.0),
            planks(0.62, 0.15),
        ),
    ]
}

/// Everything round that stands on the floor or hangs.
fn columns() -> Vec<(Solid, Finish)> {
    let metal = Finish::new([0.55, 0.57, 0.6], [0.2; 3], Pattern::Plain);
    let shade = Finish::new(
        hue(0.13, 0.55, 1.0),
        hue(0.05, 0.8, 0.9),
        Pattern::Boards(0.12),
    );
    let pillar = Finish::new(
        hue(0.53, 0.75, 0.75),
        hue(0.97, 0.85, 0.85),
        Pattern::Boards(0.35),
    );
    let bin = Finish::new(
        hue(0.22, 0.9, 0.8),
        hue(0.7, 0.9, 0.5),
        Pattern::Boards(0.16),
    );
    let pot = Finish::new(
        hue(0.04, 0.8, 0.65),
        hue(0.13, 0.5, 0.95),
        Pattern::Boards(0.18),
    );
    let leaves = Finish::new(
        hue(0.3, 0.85, 0.45),
        [0.1, 0.3, 0.05],
        Pattern::Checks(0.12),
    )
    .mural(0.4);
    let lamp = Finish::new([1.0, 0.97, 0.85], [1.0; 3], Pattern::Plain).mural(0.05);
    vec![
        (Solid::cylinder(-2.55, -2.12, 0.16, [0.0, 0.04]), metal),
        (Solid::cylinder(-2.55, -2.12, 0.03, [0.04, 1.35]), metal),
        (
            Solid::cylinder(-2.55, -2.12, 0.24, [1.35, 1.7]),
            shade.glowing(),
        ),
        (Solid::cylinder(2.62, -2.12, 0.24, [0.0, 2.8]), pillar),
        (Solid::cylinder(2.75, -0.2, 0.15, [0.0, 0.45]), bin),
        (Solid::cylinder(2.6, 2.2, 0.18, [0.0, 0.4]), pot),
        (Solid::cylinder(2.6, 2.2, 0.27, [0.4, 1.3]), leaves),
        (Solid::cylinder(0.35, 0.1, 0.4, [2.68, 2.8]), lamp.glowing()),
    ]
}
