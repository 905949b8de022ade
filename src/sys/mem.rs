//! Copying and comparing of bytes for the static file: memcpy, memmove, memcmp and bcmp by the
//! names under which compiled code calls them. The functions of musl go byte by byte where a copy
//! runs backwards or a comparison runs at all, and start a microcoded loop for each copy of a few
//! bytes, which was a quarter of mbatchd's time. glibc's are good, and so are musl's on other
//! processors: there this file is only compiled for its tests.
//!
//! Short stretches are read whole before anything is written, by two overlapping reads of one
//! width: that is right for stretches that overlap, and needs no loop.
//!
//! Invariant: no byte outside the two stretches is touched. Nothing here allocates or calls.
#![allow(unsafe_code)]

use core::arch::x86_64::{
    __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_storeu_si128,
};

/// Bytes moved in one turn of the loop over a long stretch.
const TURN: usize = 64;

type Four = [__m128i; 4];

/// # Safety
/// 16 bytes at `p` can be read.
#[inline(always)]
unsafe fn load(p: *const u8) -> __m128i {
    // SAFETY: the caller's promise; the load needs no alignment.
    unsafe { _mm_loadu_si128(p.cast()) }
}

/// # Safety
/// 16 bytes at `p` can be written.
#[inline(always)]
unsafe fn store(p: *mut u8, v: __m128i) {
    // SAFETY: the caller's promise; the store needs no alignment.
    unsafe { _mm_storeu_si128(p.cast(), v) }
}

/// # Safety
/// [`TURN`] bytes at `p` can be read.
#[inline(always)]
unsafe fn load4(p: *const u8) -> Four {
    // SAFETY: the four loads cover just those bytes.
    unsafe { [load(p), load(p.add(16)), load(p.add(32)), load(p.add(48))] }
}

/// # Safety
/// [`TURN`] bytes at `p` can be written.
#[inline(always)]
unsafe fn store4(p: *mut u8, v: Four) {
    // SAFETY: the four stores cover just those bytes.
    unsafe {
        store(p, v[0]);
        store(p.add(16), v[1]);
        store(p.add(32), v[2]);
        store(p.add(48), v[3]);
    }
}

/// Copies as memmove does: the stretches may overlap.
///
/// # Safety
/// `n` bytes at `s` can be read, and `n` bytes at `d` be written.
#[inline(always)]
unsafe fn copy(d: *mut u8, s: *const u8, n: usize) {
    /// The first and the last bytes of this width, which overlap when `n` is less than two.
    macro_rules! ends {
        ($t:ty) => {{
            let last = n - size_of::<$t>();
            let a = s.cast::<$t>().read_unaligned();
            let b = s.add(last).cast::<$t>().read_unaligned();
            d.cast::<$t>().write_unaligned(a);
            d.add(last).cast::<$t>().write_unaligned(b);
        }};
    }
    // SAFETY: in each case `n` is at least the width, so that both ends lie in the stretches.
    unsafe {
        if n > 128 {
            long(d, s, n);
        } else if n > TURN {
            let (head, tail) = (load4(s), load4(s.add(n - TURN)));
            store4(d, head);
            store4(d.add(n - TURN), tail);
        } else if n > 32 {
            let head = [load(s), load(s.add(16))];
            let tail = [load(s.add(n - 32)), load(s.add(n - 16))];
            store(d, head[0]);
            store(d.add(16), head[1]);
            store(d.add(n - 32), tail[0]);
            store(d.add(n - 16), tail[1]);
        } else if n >= 16 {
            ends!(__m128i);
        } else if n >= 8 {
            ends!(u64);
        } else if n >= 4 {
            ends!(u32);
        } else if n >= 2 {
            ends!(u16);
        } else if n == 1 {
            *d = *s;
        }
    }
}

/// # Safety
/// As for [`copy`]; `n` is more than [`TURN`].
#[inline(never)]
unsafe fn long(d: *mut u8, s: *const u8, n: usize) {
    // SAFETY: every turn lies within the `n` bytes, and so do the stretches of TURN bytes at their
    // ends. Bytes that a turn reads were not yet written: forwards when the target lies before the
    // source or behind its end, else backwards; the last (or first) TURN bytes are read before the
    // loop, since it may write over them.
    unsafe {
        if (d as usize).wrapping_sub(s as usize) >= n {
            let tail = load4(s.add(n - TURN));
            let mut at = 0;
            while at < n - TURN {
                store4(d.add(at), load4(s.add(at)));
                at += TURN;
            }
            store4(d.add(n - TURN), tail);
        } else {
            let head = load4(s);
            let mut at = n;
            while at > TURN {
                at -= TURN;
                store4(d.add(at), load4(s.add(at)));
            }
            store4(d, head);
        }
    }
}

/// Compares as memcmp does.
///
/// # Safety
/// `n` bytes at `a` and at `b` can be read.
#[inline(always)]
unsafe fn compare(a: *const u8, b: *const u8, n: usize) -> i32 {
    // SAFETY: every read lies within the `n` bytes: at `at` with a whole width left, or at the
    // last whole width.
    unsafe {
        if n >= 16 {
            let mut at = 0;
            loop {
                let same = _mm_movemask_epi8(_mm_cmpeq_epi8(load(a.add(at)), load(b.add(at))));
                if same != 0xffff {
                    let first = at + (!same).trailing_zeros() as usize;
                    return i32::from(*a.add(first)) - i32::from(*b.add(first));
                }
                if at + 16 == n {
                    return 0;
                }
                at = (at + 16).min(n - 16);
            }
        }
        macro_rules! ends {
            ($t:ty) => {{
                let word = |p: *const u8, at: usize| {
                    <$t>::from_be(p.add(at).cast::<$t>().read_unaligned())
                };
                let last = n - size_of::<$t>();
                let first = word(a, 0).cmp(&word(b, 0));
                first.then_with(|| word(a, last).cmp(&word(b, last))) as i32
            }};
        }
        match n {
            0 => 0,
            1 => i32::from(*a) - i32::from(*b),
            2..4 => ends!(u16),
            4..8 => ends!(u32),
            _ => ends!(u64),
        }
    }
}

/// The names for the linker. In a build that is not optimised the compiler would call memcpy for
/// the moves above. Not inlined into their callers, of which there are thousands.
#[cfg(all(target_env = "musl", not(debug_assertions)))]
mod names {
    /// # Safety
    /// That of C.
    #[inline(never)]
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcpy(d: *mut u8, s: *const u8, n: usize) -> *mut u8 {
        // SAFETY: what the caller promises C's function of this name.
        unsafe { super::copy(d, s, n) }
        d
    }
    /// # Safety
    /// That of C.
    #[inline(never)]
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memmove(d: *mut u8, s: *const u8, n: usize) -> *mut u8 {
        // SAFETY: what the caller promises C's function of this name.
        unsafe { super::copy(d, s, n) }
        d
    }
    /// # Safety
    /// That of C.
    #[inline(never)]
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, n: usize) -> i32 {
        // SAFETY: what the caller promises C's function of this name.
        unsafe { super::compare(a, b, n) }
    }
    /// # Safety
    /// That of C.
    #[inline(never)]
    #[unsafe(no_mangle)]
    unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, n: usize) -> i32 {
        // SAFETY: what the caller promises C's function of this name.
        unsafe { super::compare(a, b, n) }
    }
}

#[cfg(test)]
mod tests {
    /// Every length up to a few turns, every way of lying over one another.
    #[test]
    fn copies_as_a_slice_does() {
        let all: Vec<u8> = (0..1024u32).map(|i| (i * 7 + i / 256) as u8).collect();
        for n in (0..300).chain([384, 447, 448, 449]) {
            for (from, to) in [(0, 512), (512, 0), (3, 3), (9, 8), (8, 9), (1, 65), (65, 1)]
                .into_iter()
                .chain((0..40).map(|i| (20, i)))
                .chain((0..300).step_by(13).map(|i| (150, i)))
            {
                let (mut ours, mut right) = (all.clone(), all.clone());
                right.copy_within(from..from + n, to);
                let p = ours.as_mut_ptr();
                // SAFETY: both stretches lie in the buffer.
                unsafe { super::copy(p.add(to), p.add(from).cast_const(), n) };
                assert!(ours == right, "{n} bytes from {from} to {to}");
            }
        }
    }

    #[test]
    fn compares_as_slices_do() {
        for n in 0..100usize {
            let a: Vec<u8> = (0..n).map(|i| i as u8).collect();
            let ours = |x: &[u8], y: &[u8]| {
                // SAFETY: both have n bytes.
                unsafe { super::compare(x.as_ptr(), y.as_ptr(), n) }.cmp(&0)
            };
            assert_eq!(ours(&a, &a), a.cmp(&a));
            for i in 0..n {
                for change in [1u8, 0x80, 0xff] {
                    let mut b = a.clone();
                    b[i] = b[i].wrapping_add(change);
                    // a later difference of the other sign does not count
                    if i + 1 < n {
                        b[n - 1] = b[n - 1].wrapping_sub(change);
                    }
                    assert_eq!(ours(&a, &b), a.cmp(&b), "{n} bytes, at {i}");
                    assert_eq!(ours(&b, &a), b.cmp(&a), "{n} bytes, at {i}");
                }
            }
        }
    }
}
