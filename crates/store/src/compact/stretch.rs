use crate::Digest;
use crate::pack::Location;

/// A stretch of the new order.
pub(super) enum Stretch {
    /// Exactly the bodies of one frame, in its order.
    Whole(Location, u64, Vec<Digest>),
    Loose(u64, Vec<Digest>),
}

/// Joins loose neighbours, and lets a small loose stretch take a whole frame in, so that frames
/// do not become ever smaller.
pub(super) fn join_small(
    stretches: Vec<Stretch>,
    is_small: &dyn Fn(u64, usize) -> bool,
) -> Vec<Stretch> {
    let mut joined: Vec<Stretch> = Vec::new();
    for stretch in stretches {
        let join = match (joined.last(), &stretch) {
            (Some(Stretch::Loose(..)), Stretch::Loose(..)) => true,
            (Some(Stretch::Loose(bytes, digests)), Stretch::Whole(_, whole_bytes, whole)) => {
                is_small(*bytes, digests.len()) || is_small(*whole_bytes, whole.len())
            }
            (Some(Stretch::Whole(_, bytes, digests)), Stretch::Loose(..)) => {
                is_small(*bytes, digests.len())
            }
            _ => false,
        };
        if !join {
            joined.push(stretch);
            continue;
        }
        let (Stretch::Loose(more_bytes, more) | Stretch::Whole(_, more_bytes, more)) = stretch;
        let Some(Stretch::Loose(bytes, mut digests) | Stretch::Whole(_, bytes, mut digests)) =
            joined.pop()
        else {
            unreachable!("there is a stretch to join")
        };
        digests.extend(more);
        joined.push(Stretch::Loose(bytes + more_bytes, digests));
    }
    joined
}
