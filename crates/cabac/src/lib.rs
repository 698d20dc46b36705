//! An adaptive binary range coder.
//!
//! `preflate-rs` codes its corrections by a crate named `cabac`, whose licence (LGPL) does not go with
//! this program's. This one has the names that `preflate-rs` calls, and a coder of its own behind
//! them: `[patch.crates-io]` in the workspace puts it in that place.
//!
//! A decision is coded with the probability that its context learnt from the decisions before. The
//! reader refuses to go on beyond the end of its bytes, so that a stream always ends.
//!
//! Read in this order: [`CabacWriter`] and [`CabacReader`], what is put and comes back; [`vp8`], the
//! coder.

use std::io;

pub mod vp8;

/// Shows that this crate is linked, and not the one from the registry, whose coder writes other bytes.
pub const THE_CODER_OF_PACKS: () = ();

/// Gives decisions back, in the order in which they were put.
pub trait CabacReader<C> {
    /// The next decision in this context.
    fn get(&mut self, context: &mut C) -> io::Result<bool>;

    /// A number below or equal to the count of contexts: so many times true, then false.
    fn get_unary_encoded(&mut self, contexts: &mut [C]) -> io::Result<usize> {
        for (number, context) in contexts.iter_mut().enumerate() {
            if !self.get(context)? {
                return Ok(number);
            }
        }
        Ok(contexts.len())
    }

    /// A number of so many bits, the highest first, each in the context of its position.
    fn get_n_bits(&mut self, bits: usize, contexts: &mut [C]) -> io::Result<u64> {
        let mut number = 0;
        for at in (0..bits).rev() {
            let context = contexts.get_mut(at).ok_or_else(too_large)?;
            number |= u64::from(self.get(context)?) << at;
        }
        Ok(number)
    }
}

/// Takes decisions.
pub trait CabacWriter<C> {
    /// Puts a decision in this context.
    fn put(&mut self, decision: bool, context: &mut C) -> io::Result<()>;

    /// Puts a number below or equal to the count of contexts.
    fn put_unary_encoded(&mut self, number: usize, contexts: &mut [C]) -> io::Result<()> {
        if number > contexts.len() {
            return Err(too_large());
        }
        for (at, context) in contexts.iter_mut().enumerate().take(number + 1) {
            self.put(at < number, context)?;
        }
        Ok(())
    }

    /// Puts so many bits of a number.
    fn put_n_bits(&mut self, number: u64, bits: usize, contexts: &mut [C]) -> io::Result<()> {
        for at in (0..bits).rev() {
            let context = contexts.get_mut(at).ok_or_else(too_large)?;
            self.put(number >> at & 1 != 0, context)?;
        }
        Ok(())
    }

    /// Writes what is left; nothing may be put behind it.
    fn finish(&mut self) -> io::Result<()>;
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a number is larger than its contexts allow")
}
