use base64::{Engine, prelude::BASE64_STANDARD};

/// A picture of a page.
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    /// The file, as the browser made it.
    pub png: Vec<u8>,
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Picture {
    /// Reads what the browser sends.
    pub(crate) fn from_base64(text: &str) -> Self {
        let png = BASE64_STANDARD.decode(text).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(&png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut pixels).unwrap();
        let (width, height) = (frame.width as usize, frame.height as usize);
        let channels = frame.color_type.samples();
        // Alpha is left out: pages are opaque, and some pictures come without it.
        let pixels = pixels.chunks_exact(channels).flat_map(|p| [p[0], p[1], p[2]]).collect();
        Self { png, width, height, pixels }
    }

    /// The share of pixels that differ visibly, from 0 to 1; pixels that only one picture has count
    /// as different.
    pub fn difference(&self, other: &Self) -> f64 {
        let (width, height) = (self.width.max(other.width), self.height.max(other.height));
        let mut differing = 0_usize;
        for y in 0..height {
            for x in 0..width {
                let is_same = match (self.pixel(x, y), other.pixel(x, y)) {
                    (Some(a), Some(b)) => a.iter().zip(b).all(|(a, b)| a.abs_diff(*b) <= VISIBLE),
                    _ => false,
                };
                differing += usize::from(!is_same);
            }
        }
        differing as f64 / (width * height).max(1) as f64
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    /// How many colours there are: a blank page has one.
    pub fn colours(&self) -> usize {
        let colours: std::collections::BTreeSet<&[u8]> = self.pixels.chunks_exact(3).collect();
        colours.len()
    }

    fn pixel(&self, x: usize, y: usize) -> Option<&[u8]> {
        if x >= self.width || y >= self.height {
            return None;
        }
        let at = (y * self.width + x) * 3;
        self.pixels.get(at..at + 3)
    }
}

/// Steps of a colour that nobody sees; smoothing of letters differs by one or two between runs.
const VISIBLE: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: usize, height: usize, pixels: &[u8]) -> Picture {
        Picture { png: Vec::new(), width, height, pixels: pixels.to_vec() }
    }

    #[test]
    fn pixels_that_differ_or_exist_in_one_picture_only_are_counted() {
        let a = picture(2, 1, &[0, 0, 0, 255, 255, 255]);
        let b = picture(2, 1, &[2, 0, 0, 255, 200, 255]);
        assert_eq!(a.difference(&a), 0.0);
        assert_eq!(a.difference(&b), 0.5);
        let taller = picture(2, 2, &[0, 0, 0, 255, 255, 255, 0, 0, 0, 0, 0, 0]);
        assert_eq!(a.difference(&taller), 0.5);
        assert_eq!(taller.colours(), 2);
    }
}
