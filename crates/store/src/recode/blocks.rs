/// Blocks and components of a picture, by its frame segment behind the length.
pub(super) fn count_blocks(frame: &[u8]) -> Option<(usize, usize)> {
    let size = frame.get(1..5)?;
    let height = usize::from(u16::from_be_bytes([size[0], size[1]]));
    let width = usize::from(u16::from_be_bytes([size[2], size[3]]));
    let components = usize::from(*frame.get(5)?);
    let factors = frame.get(6..6 + 3 * components)?.chunks_exact(3);
    let factors: Vec<(usize, usize)> =
        factors.map(|part| (usize::from(part[1] >> 4), usize::from(part[1] & 15))).collect();
    let (across, down) = factors.iter().fold((1, 1), |(a, d), (x, y)| (a.max(*x), d.max(*y)));
    let units = width.div_ceil(8 * across) * height.div_ceil(8 * down);
    Some((factors.iter().map(|(x, y)| x * y * units).sum(), components))
}
