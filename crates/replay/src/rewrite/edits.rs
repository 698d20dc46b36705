use std::ops::Range;

/// Replacements in a text, in order. Everything between them is copied unchanged.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    edits: Vec<(Range<usize>, Vec<u8>)>,
}

impl Edits {
    /// Replaces a range. A range that overlaps the last one is refused: two edits of the same bytes
    /// could only spoil them.
    pub(crate) fn replace(&mut self, range: Range<usize>, with: impl Into<Vec<u8>>) {
        let end = self.edits.last().map_or(0, |(last, _)| last.end);
        if range.start >= end && range.start <= range.end {
            self.edits.push((range, with.into()));
        }
    }

    pub(crate) fn insert(&mut self, at: usize, text: impl Into<Vec<u8>>) {
        self.replace(at..at, text);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// The edited text.
    pub(crate) fn apply(&self, text: &[u8]) -> Vec<u8> {
        let added: usize = self.edits.iter().map(|(_, with)| with.len()).sum();
        let mut out = Vec::with_capacity(text.len() + added);
        let mut at = 0;
        for (range, with) in &self.edits {
            let Some(kept) = text.get(at..range.start) else { break };
            out.extend_from_slice(kept);
            out.extend_from_slice(with);
            at = range.end.min(text.len());
        }
        out.extend_from_slice(&text[at..]);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_ranges_named_change() {
        let mut edits = Edits::default();
        edits.replace(2..4, "XYZ");
        edits.replace(3..5, "refused");
        edits.insert(6, "!");
        assert_eq!(edits.apply(b"abcdefgh"), b"abXYZef!gh");
    }
}
