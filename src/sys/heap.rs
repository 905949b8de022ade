//! The allocator of the static file: dlmalloc (musl's own is several times slower) behind the
//! standard library's lock, which costs two atomic steps where nobody waits for it.
//!
//! Each thread keeps a few small blocks that it freed, by their size, so that most allocations
//! need neither lock nor search. What a thread keeps when it ends is lost: there are few threads,
//! and they live as long as their daemon. The functions are not inlined into the thousands of
//! places that allocate: that made the file a fifth larger and nothing faster.
#![allow(unsafe_code)]

use dlmalloc::{Allocator, Dlmalloc};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sizes that are kept: each holds 16 bytes more than the one before, as dlmalloc's chunks do.
const SIZES: usize = 33;
/// Bytes that dlmalloc needs in front of a block.
const HEAD: usize = 8;
/// Blocks of a size that a thread keeps.
const KEPT: u32 = 64;

/// Bytes from the system beyond which more comes in large steps, on huge pages where the system
/// has them: a million jobs lie on 500 such pages instead of 200,000 others, each of which costs a
/// fault at first and a search in tables at every visit that is not near the one before.
const LARGE: usize = 32 << 20;
/// Such a step.
const STEP: usize = 8 << 20;

/// Where dlmalloc gets memory from, and how much it has.
struct Pages(AtomicUsize);

// SAFETY: regions are fresh mappings of at least the size asked for, and are given back whole.
unsafe impl Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let large = self.0.load(Relaxed) >= LARGE;
        let size = if large { size.next_multiple_of(STEP) } else { size };
        let (may, how) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a mapping at no fixed place replaces nothing.
        let Ok(base) = (unsafe { mmap_anonymous(null_mut(), size, may, how) }) else {
            return (null_mut(), 0, 0);
        };
        if large {
            // SAFETY: advice about a region of ours, which changes nothing that can be seen in it.
            // Where the system has no huge pages it says so.
            let _ = unsafe { madvise(base, size, Advice::LinuxHugepage) };
        }
        self.0.fetch_add(size, Relaxed);
        (base.cast(), size, 0)
    }
    fn remap(&self, _base: *mut u8, _from: usize, _to: usize, _may_move: bool) -> *mut u8 {
        null_mut()
    }
    // the last step would be given back and taken again in turn
    fn can_release_part(&self, _flags: u32) -> bool {
        false
    }
    fn free_part(&self, _base: *mut u8, _from: usize, _to: usize) -> bool {
        false
    }
    fn free(&self, base: *mut u8, size: usize) -> bool {
        // SAFETY: dlmalloc has nothing in it any more.
        let done = unsafe { munmap(base.cast(), size) }.is_ok();
        if done {
            self.0.fetch_sub(size, Relaxed);
        }
        done
    }
    fn allocates_zeros(&self) -> bool {
        true
    }
    fn page_size(&self) -> usize {
        rustix::param::page_size()
    }
}

static HEAP: Mutex<Dlmalloc<Pages>> =
    Mutex::new(Dlmalloc::new_with_allocator(Pages(AtomicUsize::new(0))));

/// The global allocator.
pub struct Heap;

fn heap() -> MutexGuard<'static, Dlmalloc<Pages>> {
    HEAP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Free blocks of one size: each begins with the address of the next.
struct Shelf {
    first: Cell<*mut u8>,
    left: Cell<u32>,
}

thread_local! {
    // no destructor: an allocation may come at any time of a thread's life
    static SHELVES: [Shelf; SIZES] =
        const { [const { Shelf { first: Cell::new(null_mut()), left: Cell::new(KEPT) } }; SIZES] };
}

/// The shelf for a layout, and the bytes of each block on it; `None`: it is not kept.
#[inline(always)]
fn shelf_of(layout: &Layout) -> Option<(usize, usize)> {
    let at = (layout.size() + HEAD - 1) / 16;
    (at < SIZES && layout.align() <= 16).then_some((at, (at * 16 + HEAD).max(24)))
}

impl Shelf {
    #[inline(always)]
    fn take(&self) -> Option<*mut u8> {
        let block = self.first.get();
        if block.is_null() {
            return None;
        }
        // SAFETY: a block on a shelf is ours alone and holds the address of the next.
        self.first.set(unsafe { block.cast::<*mut u8>().read() });
        self.left.set(self.left.get() + 1);
        Some(block)
    }

    /// `false`: it is full.
    ///
    /// # Safety
    /// The block is of this shelf's size, and nobody uses it any more.
    #[inline(always)]
    unsafe fn put(&self, block: *mut u8) -> bool {
        let left = self.left.get();
        if left == 0 {
            return false;
        }
        // SAFETY: every block has room for an address, and is aligned for it.
        unsafe { block.cast::<*mut u8>().write(self.first.get()) };
        self.first.set(block);
        self.left.set(left - 1);
        true
    }
}

// SAFETY: blocks come from dlmalloc, which is behind a lock, with at least the layout's size; those
// on a shelf are of the size of all its layouts, and of dlmalloc's alignment, 16.
unsafe impl GlobalAlloc for Heap {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match shelf_of(&layout) {
            Some((at, size)) => match SHELVES.with(|s| s[at].take()) {
                Some(block) => block,
                // SAFETY: the size is not 0.
                None => unsafe { heap().malloc(size, 16) },
            },
            // SAFETY: the caller's layout.
            None => unsafe { heap().malloc(layout.size(), layout.align()) },
        }
    }

    #[inline(never)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let (size, align) = match shelf_of(&layout) {
            Some((at, size)) => {
                // SAFETY: it was allocated with this layout.
                if SHELVES.with(|s| unsafe { s[at].put(block) }) {
                    return;
                }
                (size, 16)
            }
            None => (layout.size(), layout.align()),
        };
        // SAFETY: it came from there with this size.
        unsafe { heap().free(block, size, align) }
    }

    #[inline(never)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match shelf_of(&layout) {
            Some(_) => {
                // SAFETY: the caller's layout; what was allocated has its size.
                unsafe {
                    let block = self.alloc(layout);
                    if !block.is_null() {
                        block.write_bytes(0, layout.size());
                    }
                    block
                }
            }
            // SAFETY: the caller's layout. Fresh pages are not written.
            None => unsafe { heap().calloc(layout.size(), layout.align()) },
        }
    }

    #[inline(never)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, to: usize) -> *mut u8 {
        // SAFETY: the caller promises that `to` is a valid size for this alignment.
        let new = unsafe { Layout::from_size_align_unchecked(to, layout.align()) };
        match (shelf_of(&layout), shelf_of(&new)) {
            (Some(a), Some(b)) if a == b => block,
            // SAFETY: it came from there with this size.
            (None, None) => unsafe { heap().realloc(block, layout.size(), layout.align(), to) },
            _ => {
                // SAFETY: both have at least so many bytes and do not overlap.
                unsafe {
                    let moved = self.alloc(new);
                    if !moved.is_null() {
                        moved.copy_from_nonoverlapping(block, layout.size().min(to));
                        self.dealloc(block, layout);
                    }
                    moved
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of all sizes, allocated, grown and freed in a disorder that repeats, in threads
    /// that free what others allocated: none lies over another, each keeps what was written.
    #[test]
    fn blocks_keep_what_is_written_in_them() {
        let (give, take) = std::sync::mpsc::channel::<(usize, Layout, u8)>();
        let maker = std::thread::spawn(move || {
            let mut seed = 7u64;
            for n in 0..20_000u32 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let size = 1 + (seed >> 33) as usize % if n % 50 == 0 { 100_000 } else { 600 };
                let align = 1usize << ((seed >> 20) % 7);
                let layout = Layout::from_size_align(size, align).unwrap();
                let mark = n as u8;
                // SAFETY: the size is not 0, and the block is written within it.
                let (block, layout) = unsafe {
                    let block = Heap.alloc_zeroed(layout);
                    assert_eq!(block as usize % align, 0);
                    assert!((0..size).all(|i| *block.add(i) == 0), "zeroed");
                    block.write_bytes(mark, size);
                    let to = 1 + (seed >> 40) as usize % 700;
                    let block = Heap.realloc(block, layout, to);
                    assert!((0..size.min(to)).all(|i| *block.add(i) == mark), "moved");
                    block.write_bytes(mark, to);
                    (block, Layout::from_size_align(to, align).unwrap())
                };
                give.send((block as usize, layout, mark)).unwrap();
            }
        });
        let mut live = Vec::new();
        let free = |(block, layout, mark): (usize, Layout, u8)| {
            let block = block as *mut u8;
            // SAFETY: allocated above with this layout, freed once.
            unsafe {
                assert!((0..layout.size()).all(|i| *block.add(i) == mark), "kept");
                Heap.dealloc(block, layout);
            }
        };
        for one in take {
            live.push(one);
            if live.len() > 300 {
                let at = (one.0 >> 4) % live.len();
                free(live.swap_remove(at));
            }
        }
        live.into_iter().for_each(free);
        maker.join().unwrap();
    }
}
