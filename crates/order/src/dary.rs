//! Moves of an indexed 4-ary heap on a slice. Four children share one or two cache lines, and the
//! heap is half as deep as a binary one.

const ARITY: usize = 4;

/// The parent of a position other than the first.
pub(crate) fn parent_of(position: usize) -> usize {
    (position - 1) / ARITY
}

/// Moves the entry at `at` up to where it belongs and returns that position. `moved` is called for
/// every entry that moved.
pub(crate) fn sift_up<E: Copy>(
    entries: &mut [E],
    mut at: usize,
    is_before: impl Fn(&E, &E) -> bool,
    mut moved: impl FnMut(&E, usize),
) -> usize {
    let entry = entries[at];
    while at > 0 {
        let parent = parent_of(at);
        if !is_before(&entry, &entries[parent]) {
            break;
        }
        entries[at] = entries[parent];
        moved(&entries[at], at);
        at = parent;
    }
    entries[at] = entry;
    moved(&entry, at);
    at
}

/// Moves the entry at `at` down to where it belongs.
pub(crate) fn sift_down<E: Copy>(
    entries: &mut [E],
    mut at: usize,
    is_before: impl Fn(&E, &E) -> bool,
    mut moved: impl FnMut(&E, usize),
) {
    let entry = entries[at];
    loop {
        let first = at * ARITY + 1;
        let mut best = first;
        for child in first + 1..(first + ARITY).min(entries.len()) {
            if is_before(&entries[child], &entries[best]) {
                best = child;
            }
        }
        if first >= entries.len() || !is_before(&entries[best], &entry) {
            break;
        }
        entries[at] = entries[best];
        moved(&entries[at], at);
        at = best;
    }
    entries[at] = entry;
    moved(&entry, at);
}

/// Pushes with at most an eighth of unused capacity: memory per page is bounded, and growth still
/// costs a constant per entry on average.
pub(crate) fn push_tight<E>(entries: &mut Vec<E>, entry: E) {
    if entries.len() == entries.capacity() {
        entries.reserve_exact(entries.len() / 8 + 4);
    }
    entries.push(entry);
}
