//! The allocator of the static file: dlmalloc (musl's own is several times slower) behind the
//! standard library's lock, which costs two atomic steps where nobody waits for it.
//!
//! Each thread keeps a few small blocks that it freed, by their size, so that most allocations
//! need neither lock nor search; they go back when it ends. The functions are not inlined into the
//! thousands of places that allocate: that made the file a fifth larger and nothing faster.
//!
//! Memory goes back to the system: a large block when it is freed, as it is a mapping of its own
//! (but a few, which are used again: see [`SPARES`]); small ones step by step, as each step of
//! [`STEP`] bytes is given back when nothing in it is used. For that the steps are kept apart:
//! dlmalloc would join those that lie beside each other, and one block in use would then hold all
//! of them.
#![allow(unsafe_code)]

use Ordering::{AcqRel, Relaxed, Release};
use dlmalloc::{Allocator, Dlmalloc};
use rustix::mm::{
    Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap, munmap,
};
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

/// Sizes that are kept: each holds 16 bytes more than the one before, as dlmalloc's chunks do. The
/// largest holds a start order.
const SIZES: usize = 47;
/// Bytes that dlmalloc needs in front of a block.
const HEAD: usize = 8;
/// Blocks of a size that a thread keeps: those of all jobs that a pass starts in one turn of
/// mbatchd's loop, which come and go together.
const KEPT: u32 = 256;

/// Bytes from the system beyond which more comes in large steps, on huge pages where the system
/// has them: a million jobs lie on 500 such pages instead of 200,000 others, each of which costs a
/// fault at first and a search in tables at every visit that is not near the one before.
const LARGE: usize = 32 << 20;
/// Bytes of a large step.
const STEP: usize = 8 << 20;
/// Size from which on a block is a mapping of its own, bytes.
const OWN: usize = 4 << 20;
/// Marks a step. dlmalloc joins two regions where the mark of the one, halved, is that of the
/// other, which this never is of itself.
const APART: u32 = 1 << 31;

/// The memory of dlmalloc: counts the bytes that were mapped for it.
struct Pages(AtomicUsize);

// SAFETY: regions are fresh mappings of at least the size asked for, and are given back whole.
unsafe impl Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let large = self.0.load(Relaxed) >= LARGE;
        let size = if large { size.next_multiple_of(STEP) } else { size };
        let base = match large {
            true => map_or_prepared(size),
            false => map(size, false),
        };
        if base.is_null() {
            return (base, 0, 0);
        }
        self.0.fetch_add(size, Relaxed);
        (base, size, if large { APART } else { 0 })
    }
    fn remap(&self, _base: *mut u8, _from: usize, _to: usize, _may_move: bool) -> *mut u8 {
        null_mut()
    }
    // of the marks that regions have, halved: steps go back, what came before them stays
    fn can_release_part(&self, mark: u32) -> bool {
        mark == APART >> 1
    }
    // never a part of one: that would be given back and taken again in turn
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

/// A mapping, on huge pages where that is asked for and the system has them; null where there is no
/// memory.
fn map(size: usize, huge: bool) -> *mut u8 {
    let (may, how) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a mapping at no fixed place replaces nothing.
    let Ok(base) = (unsafe { mmap_anonymous(null_mut(), size, may, how) }) else {
        return null_mut();
    };
    if huge {
        // SAFETY: advice about a region of ours, which changes nothing that can be seen in it.
        // Where the system has no huge pages it says so.
        let _ = unsafe { madvise(base, size, Advice::LinuxHugepage) };
    }
    base.cast()
}

/// A large step that the system has cleared already; null: there is none.
static PREPARED: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// The thread that prepares the next one, once [`prepare_ahead`] has begun it.
static PREPARES: OnceLock<Thread> = OnceLock::new();

/// A region for large steps, cleared; null where there is no memory.
fn map_or_prepared(size: usize) -> *mut u8 {
    let mut base = null_mut();
    if size == STEP {
        base = PREPARED.swap(null_mut(), AcqRel);
        if let Some(thread) = PREPARES.get() {
            thread.unpark();
        }
    }
    if base.is_null() { map(size, true) } else { base }
}

/// Begins a thread that has the system clear the next large step of the heap while other threads
/// still use the last one, from the first large step on: a process that grows fast does not wait
/// for it. Fresh memory took a quarter of the time in which mbatchd starts many jobs, on a virtual
/// machine whose own system had to find the memory first. Up to [`STEP`] bytes more are taken.
///
/// # Errors
/// The thread cannot be begun; all works as without it.
pub fn prepare_ahead() -> std::io::Result<()> {
    let work = || {
        loop {
            // woken when a step is taken, or for no reason
            std::thread::park();
            if PREPARED.load(Relaxed).is_null() {
                prepare_step();
            }
        }
    };
    let thread = std::thread::Builder::new().name("heap".into()).spawn(work)?;
    // a second thread would do no harm
    let _ = PREPARES.set(thread.thread().clone());
    Ok(())
}

fn prepare_step() {
    let step = map(STEP, true);
    if step.is_null() {
        return;
    }
    // SAFETY: advice about a region of ours: its pages are there then, and as empty as before. An
    // older system does not know it, and clears each page at its first use.
    let _ = unsafe { madvise(step.cast(), STEP, Advice::LinuxPopulateWrite) };
    PREPARED.store(step, Release);
}

/// Freed mappings of [`OWN`] bytes, which are used again: a buffer that grows by doubling, as that
/// of each commit of a busy log, comes to this size. The system clears a fresh huge page at its
/// first use, which took a virtual machine up to 70 ms of the event loop's time where its own
/// system had taken that page back. Null: none.
static SPARES: [AtomicPtr<u8>; 4] = [const { AtomicPtr::new(null_mut()) }; 4];

/// A block with a mapping of its own, not cleared; null where there is no memory.
fn map_or_spare(size: usize) -> *mut u8 {
    let spares = SPARES.iter().filter(|_| size == OWN);
    let spare = spares.map(|spare| spare.swap(null_mut(), AcqRel)).find(|block| !block.is_null());
    spare.unwrap_or_else(|| map(size, true))
}

/// Keeps a mapping of this size that nobody uses any more, or gives it back to the system.
///
/// # Safety
/// The block came from [`map_or_spare`] or [`map`] with this size, and nobody uses it any more.
unsafe fn unmap_or_keep(block: *mut u8, size: usize) {
    let none = null_mut();
    let kept = |spare: &AtomicPtr<u8>| spare.compare_exchange(none, block, AcqRel, Relaxed).is_ok();
    if size != OWN || !SPARES.iter().any(kept) {
        // SAFETY: as the caller promises. A failure of munmap cannot be reported here; the mapping
        // stays then.
        let _ = unsafe { munmap(block.cast(), size) };
    }
}

/// Is a block of this layout a mapping of its own?
#[inline(always)]
fn own(layout: &Layout) -> bool {
    layout.size() >= OWN && layout.align() <= 4096
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
    static STAGE: Cell<Stage> = const { Cell::new(Stage::New) };
    static LEAVES: Leaves = const { Leaves };
}

/// The stages of a thread's life.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    New,
    /// The thread keeps blocks, which go back at its end.
    Keeps,
    /// The thread ends: it keeps nothing any more.
    Ends,
}

/// Gives back what a thread keeps when it ends.
struct Leaves;

impl Drop for Leaves {
    fn drop(&mut self) {
        STAGE.set(Stage::Ends);
        SHELVES.with(|shelves| {
            for (at, shelf) in shelves.iter().enumerate() {
                while let Some(block) = shelf.take() {
                    // SAFETY: it came from there with the size of its shelf, and nobody uses it.
                    unsafe { heap().free(block, shelf_size(at), 16) }
                }
            }
        });
    }
}

/// May this thread keep a block? The first time it has its blocks given back at its end.
#[inline(always)]
fn keeps() -> bool {
    match STAGE.get() {
        Stage::Keeps => true,
        Stage::Ends => false,
        Stage::New => begin_to_keep(),
    }
}

/// Has a thread begun to keep blocks? The first is that of `main`, with which the process ends.
static BEGUN: AtomicBool = AtomicBool::new(false);

#[cold]
fn begin_to_keep() -> bool {
    // what this allocates and frees itself finds the thread begun
    STAGE.set(Stage::Keeps);
    // no command pays for an end that its only thread never comes to
    !BEGUN.swap(true, Relaxed) || LEAVES.try_with(|_| ()).is_ok()
}

fn shelf_size(at: usize) -> usize {
    (at * 16 + HEAD).max(24)
}

/// The shelf for a layout, and the bytes of each block on it; `None`: it is not kept.
#[inline(always)]
fn shelf_of(layout: &Layout) -> Option<(usize, usize)> {
    let at = (layout.size() + HEAD - 1) / 16;
    (at < SIZES && layout.align() <= 16).then(|| (at, shelf_size(at)))
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
            None if own(&layout) => map_or_spare(layout.size()),
            // SAFETY: the caller's layout.
            None => unsafe { heap().malloc(layout.size(), layout.align()) },
        }
    }

    #[inline(never)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let (size, align) = match shelf_of(&layout) {
            Some((at, size)) => {
                // SAFETY: it was allocated with this layout.
                if keeps() && SHELVES.with(|s| unsafe { s[at].put(block) }) {
                    return;
                }
                (size, 16)
            }
            None if own(&layout) => {
                // SAFETY: it is a mapping of this size, and nobody uses it any more.
                return unsafe { unmap_or_keep(block, layout.size()) };
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
            None if own(&layout) => map(layout.size(), true),
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
            (None, None) if own(&layout) && own(&new) => {
                let how = MremapFlags::MAYMOVE;
                // SAFETY: it is a mapping of this size; where it moves it is used there alone.
                let moved = unsafe { mremap(block.cast(), layout.size(), to, how) };
                moved.map_or(null_mut(), |moved| moved.cast())
            }
            // SAFETY: it came from there with this size.
            (None, None) if !own(&layout) && !own(&new) => unsafe {
                heap().realloc(block, layout.size(), layout.align(), to)
            },
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

    /// The tests measure one heap: one at a time, so that none holds what another frees.
    static ONE: Mutex<()> = Mutex::new(());

    fn alone() -> MutexGuard<'static, ()> {
        ONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that dlmalloc has from the system.
    fn held() -> usize {
        heap().allocator().0.load(Relaxed)
    }

    fn small() -> Layout {
        Layout::from_size_align(104, 8).unwrap()
    }

    #[test]
    fn freed_memory_goes_back_to_the_system() {
        let _alone = alone();
        let before = held();
        // SAFETY: the size is not 0.
        let all: Vec<usize> =
            (0..2_000_000).map(|_| unsafe { Heap.alloc(small()) } as usize).collect();
        let peak = held() - before;
        assert!(peak > 200 << 20, "{peak}");
        // a few of them are kept, here and there
        let (kept, gone): (Vec<_>, Vec<_>) =
            all.into_iter().enumerate().partition(|(n, _)| n % 1_000_000 == 500_000);
        let free = |block: usize| {
            // SAFETY: allocated above with this layout, freed once.
            unsafe { Heap.dealloc(block as *mut u8, small()) }
        };
        gone.into_iter().for_each(|(_, block)| free(block));
        let left = held().saturating_sub(before);
        assert!(left < peak / 4, "{left} of {peak} bytes are still there");
        kept.into_iter().for_each(|(_, block)| free(block));
    }

    #[test]
    fn a_large_block_is_a_mapping_of_its_own() {
        let _alone = alone();
        let layout = |size| Layout::from_size_align(size, 8).unwrap();
        let mut size = OWN / 2;
        // SAFETY: blocks are used within their sizes, and freed once with the last.
        unsafe {
            let mut block = Heap.alloc_zeroed(layout(size));
            block.write_bytes(7, size);
            for to in [3 * OWN, 64 * OWN, OWN, OWN - 1, 5 * OWN] {
                block = Heap.realloc(block, layout(size), to);
                let same = size.min(to).min(OWN / 2);
                assert!((0..same).step_by(4099).all(|i| *block.add(i) == 7), "{size} to {to}");
                size = to;
            }
            let mapped = |at: usize| {
                let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
                maps.lines().any(|line| {
                    let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
                    let hex = |text| usize::from_str_radix(text, 16).unwrap();
                    (hex(from)..hex(to)).contains(&at)
                })
            };
            assert!(mapped(block as usize));
            Heap.dealloc(block, layout(size));
        }
    }

    #[test]
    fn step_that_is_taken_is_replaced_by_a_prepared_one() {
        let _alone = alone();
        prepare_ahead().unwrap();
        let first = map_or_prepared(STEP);
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while PREPARED.load(Relaxed).is_null() {
            assert!(std::time::Instant::now() < until, "no step is prepared");
            std::thread::yield_now();
        }
        let prepared = PREPARED.load(Relaxed);
        let second = map_or_prepared(STEP);
        assert_eq!(second, prepared);
        // SAFETY: both are mappings of this size, used within it and given back once.
        unsafe {
            assert!((0..STEP).step_by(4096).all(|at| *second.add(at) == 0));
            munmap(first.cast(), STEP).unwrap();
            munmap(second.cast(), STEP).unwrap();
        }
    }

    #[test]
    fn a_few_large_blocks_are_used_again_without_their_contents() {
        let _alone = alone();
        let layout = Layout::from_size_align(OWN, 8).unwrap();
        let place = |block: &*mut u8| *block as usize;
        // SAFETY: blocks are used within their sizes, and freed once.
        unsafe {
            let all: Vec<*mut u8> = (0..SPARES.len()).map(|_| Heap.alloc(layout)).collect();
            all.iter().for_each(|block| block.write_bytes(7, OWN));
            all.iter().for_each(|block| Heap.dealloc(*block, layout));
            // what is asked for as zeros is fresh
            let zeros = Heap.alloc_zeroed(layout);
            assert!((0..OWN).step_by(4096).all(|i| *zeros.add(i) == 0));
            let again: Vec<*mut u8> = (0..SPARES.len()).map(|_| Heap.alloc(layout)).collect();
            let used = again.iter().filter(|b| all.iter().any(|a| place(a) == place(b))).count();
            assert_eq!(used, SPARES.len());
            assert!(!again.iter().any(|block| place(block) == place(&zeros)));
            again.into_iter().chain([zeros]).for_each(|block| Heap.dealloc(block, layout));
        }
    }

    #[test]
    fn a_thread_that_ends_gives_back_what_it_keeps() {
        let _alone = alone();
        let busy = || {
            for size in (16..520).step_by(16) {
                let layout = Layout::from_size_align(size, 8).unwrap();
                // SAFETY: the size is not 0; each is freed once.
                unsafe {
                    let all: Vec<usize> = (0..KEPT).map(|_| Heap.alloc(layout) as usize).collect();
                    all.into_iter().for_each(|b| Heap.dealloc(b as *mut u8, layout));
                }
            }
            let kept = |s: &[Shelf; SIZES]| s.iter().filter(|s| s.left.get() == 0).count();
            assert!(SHELVES.with(kept) > 20);
        };
        std::thread::spawn(busy).join().unwrap();
        let before = held();
        (0..400).for_each(|_| std::thread::spawn(busy).join().unwrap());
        let more = held().saturating_sub(before);
        // each has kept some megabytes
        assert!(more < 64 << 20, "{more} bytes are lost");
    }

    /// Blocks of all sizes, allocated, grown and freed in a disorder that repeats, in threads
    /// that free what others allocated: none lies over another, each keeps what was written.
    #[test]
    fn blocks_keep_what_is_written_in_them() {
        let _alone = alone();
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
