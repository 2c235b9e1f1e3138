//! Resampling of the encoder's learned position embedding to another patch grid.

/// Cubic convolution kernel with a = -0.5 (Keys, 1981).
fn cubic(x: f64) -> f64 {
    const A: f64 = -0.5;
    let x = x.abs();
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A
    } else {
        0.0
    }
}

/// For each output sample: the first input sample that it sees and the weights from there on, which sum to one.
/// When shrinking, the kernel widens with the scale, so that nothing aliases.
fn taps(input: usize, output: usize) -> Vec<(usize, Vec<f64>)> {
    let scale = input as f64 / output as f64;
    let stretch = scale.max(1.0);
    let support = 2.0 * stretch;
    (0..output)
        .map(|o| {
            let centre = scale * (o as f64 + 0.5);
            let first = ((centre - support + 0.5) as i64).max(0) as usize;
            let end = ((centre + support + 0.5) as usize).min(input);
            let weights: Vec<f64> = (first..end)
                .map(|i| cubic((i as f64 - centre + 0.5) / stretch))
                .collect();
            let sum: f64 = weights.iter().sum();
            (first, weights.into_iter().map(|w| w / sum).collect())
        })
        .collect()
}

/// Resizes `table` [edge, edge, channels] to [rows, columns, channels] by antialiased bicubic interpolation, the same
/// on both axes.
pub fn resize_square(
    table: &[f32],
    edge: usize,
    channels: usize,
    rows: usize,
    columns: usize,
) -> Vec<f32> {
    debug_assert_eq!(table.len(), edge * edge * channels);
    let column_taps = taps(edge, columns);
    let mut wide = vec![0.0f64; edge * columns * channels];
    for row in 0..edge {
        for (column, (first, weights)) in column_taps.iter().enumerate() {
            let target = &mut wide[(row * columns + column) * channels..][..channels];
            for (tap, weight) in weights.iter().enumerate() {
                let source = &table[(row * edge + first + tap) * channels..][..channels];
                target
                    .iter_mut()
                    .zip(source)
                    .for_each(|(t, &s)| *t += weight * f64::from(s));
            }
        }
    }
    let width = columns * channels;
    let mut resized = Vec::with_capacity(rows * width);
    for (first, weights) in taps(edge, rows) {
        let mut line = vec![0.0f64; width];
        for (tap, weight) in weights.iter().enumerate() {
            let source = &wide[(first + tap) * width..][..width];
            line.iter_mut()
                .zip(source)
                .for_each(|(t, s)| *t += weight * s);
        }
        resized.extend(line.into_iter().map(|v| v as f32));
    }
    resized
}
