//! Long values: which buffers a log keeps alive, what it is charged for them, and when it releases them.

use crate::support;

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_buffer::Buffer;
use penstock_memory::shape::ShapeOptions;
use penstock_memory::view::{make_view, with_bytes};
use penstock_memory::{
    BlockNext, Column, ColumnKind, Coordinator, Layout, LogOptions, LogReader, LogWriter, Payload, Physical,
    SelectedColumn, Values,
};
use penstock_queue::wake::{NoWake, Wake};
use support::{assert_all_returned, coordinator, eventually};

const BUDGET_BYTES: usize = 16 << 20;
const CHUNK_ROWS: usize = 64;

/// A buffer that counts its owners: the test, and every Arrow buffer made of it.
struct Tracked {
    owner: Arc<Vec<u8>>,
}

impl Tracked {
    fn new(bytes: usize) -> Self {
        Self { owner: Arc::new((0..bytes).map(|place| (place / 7) as u8).collect()) }
    }

    fn buffer(&self) -> Buffer {
        let start = NonNull::from(self.owner.as_slice()).cast::<u8>();
        // SAFETY: the bytes are initialised and never change, and the buffer holds their owner.
        unsafe { Buffer::from_custom_allocation(start, self.owner.len(), Arc::clone(&self.owner) as _) }
    }

    fn view(&self, from: usize, len: usize, payload: u32) -> u128 {
        make_view(&self.owner[from..from + len], payload, from as u32)
    }

    /// Returns the number of other owners.
    fn holders(&self) -> usize {
        Arc::strong_count(&self.owner) - 1
    }
}

/// Opens a log with chunks of one block of [`CHUNK_ROWS`] rows, with one nullable column of strings or several.
fn log(columns: usize, coordinator: &Coordinator, wake: Arc<dyn Wake>) -> (LogWriter, LogReader) {
    let layout = Layout::new(vec![ColumnKind { physical: Physical::View, nullable: true }; columns]);
    let shape =
        ShapeOptions { block_rows: Some(CHUNK_ROWS), chunk_blocks: Some(1), ..ShapeOptions::default() };
    let options = LogOptions { shape, ..LogOptions::default() };
    let mut writer = LogWriter::new(layout, &options, coordinator, wake).unwrap();
    let reader = writer.join(Arc::new(NoWake));
    (writer, reader)
}

fn piece<'a>(views: &'a [u128], payloads: &'a Vec<Payload>, valid: Option<&'a [u8]>) -> SelectedColumn<'a> {
    SelectedColumn { column: Column { values: Values::View(views, payloads.into()), valid }, rows: None }
}

/// Writes the views into the only column.
fn write(writer: &mut LogWriter, views: &[u128], buffer: Buffer) {
    assert!(writer.room() >= views.len(), "a chunk has room");
    writer.append(&[piece(views, &vec![buffer.into()], None)], 0, views.len());
}

/// Reads all pending rows; null is `None`.
fn read(reader: &mut LogReader) -> Vec<Option<Vec<u8>>> {
    let mut found = Vec::new();
    while let BlockNext::Rows(lease) = reader.peek(usize::MAX) {
        let column = lease.column(0);
        let (views, payloads) = column.views();
        for (row, &view) in views.iter().enumerate() {
            found.push(column.is_valid(row).then(|| with_bytes(view, payloads, <[u8]>::to_vec)));
        }
        let rows = lease.rows();
        drop(lease);
        reader.advance(rows);
    }
    found
}

/// Fills the chunk with values that need no payload, so that its readers leave it.
fn fill_up(writer: &mut LogWriter, written: usize) {
    let rows = CHUNK_ROWS - written;
    write(writer, &vec![make_view(b"short", 0, 0); rows], Buffer::from_vec(Vec::<u8>::new()));
}

fn pinned(coordinator: &Coordinator) -> u64 {
    coordinator.snapshot().pinned_bytes
}

#[test]
fn a_buffer_of_which_a_quarter_is_used_is_shared() {
    let coordinator = coordinator(BUDGET_BYTES, BUDGET_BYTES);
    let (mut writer, mut reader) = log(1, &coordinator, Arc::new(NoWake));
    let before = coordinator.snapshot().used_bytes;
    let tracked = Tracked::new(4000);
    let views: Vec<u128> = (0..10).map(|row| tracked.view(row * 400, 100, 0)).collect();
    write(&mut writer, &views, tracked.buffer());
    assert_eq!(tracked.holders(), 1, "the chunk keeps it");
    assert_eq!(pinned(&coordinator), 4000, "all of it is kept alive");
    assert_eq!(coordinator.snapshot().used_bytes, before + 4000);

    fill_up(&mut writer, 10);
    let found = read(&mut reader);
    for (row, found) in found[..10].iter().enumerate() {
        assert_eq!(found.as_deref(), Some(&tracked.owner[row * 400..row * 400 + 100]), "row {row}");
    }
    assert_eq!(found[10..], vec![Some(b"short".to_vec()); CHUNK_ROWS - 10]);
    writer.trim();
    assert_eq!((tracked.holders(), pinned(&coordinator)), (0, 0), "every reader has left the chunk");
    drop((writer, reader));
    assert_all_returned(&coordinator);
}

#[test]
fn of_a_buffer_that_is_used_less_the_values_are_copied() {
    let coordinator = coordinator(BUDGET_BYTES, BUDGET_BYTES);
    let (mut writer, mut reader) = log(1, &coordinator, Arc::new(NoWake));
    let tracked = Tracked::new(4000);
    let mut views: Vec<u128> = (0..9).map(|row| tracked.view(row * 400, 100, 0)).collect();
    views.push(tracked.view(3600, 99, 0));
    write(&mut writer, &views, tracked.buffer());
    assert_eq!(tracked.holders(), 0, "no row needs it any more");
    assert!(pinned(&coordinator) >= 999, "copies are charged");
    fill_up(&mut writer, 10);
    let found = read(&mut reader);
    assert_eq!(found[9].as_deref(), Some(&tracked.owner[3600..3699]));
    assert_eq!(found[0].as_deref(), Some(&tracked.owner[..100]));
    drop((writer, reader));
    assert_eq!(pinned(&coordinator), 0);
}

#[test]
fn a_filter_that_lets_little_through_does_not_keep_the_source_alive() {
    let coordinator = coordinator(BUDGET_BYTES, BUDGET_BYTES);
    let (mut writer, mut reader) = log(1, &coordinator, Arc::new(NoWake));
    let tracked = Tracked::new(10 << 20);
    let views: Vec<u128> = (0..10_000).map(|row| tracked.view(row * 1000, 50, 0)).collect();
    let kept: Vec<u32> = (0..10).map(|row| row * 997 + 5).collect();
    let payloads = vec![tracked.buffer().into()];
    let column = Column { values: Values::View(&views, (&payloads).into()), valid: None };
    assert!(writer.room() >= 10);
    writer.append(&[SelectedColumn { column, rows: Some(&kept) }], 0, 10);
    drop(payloads);
    assert_eq!(tracked.holders(), 0, "10 values do not keep 10 MB");
    assert!(pinned(&coordinator) <= 128 << 10, "nor are they charged for it");
    let expected: Vec<_> =
        kept.iter().map(|&row| Some(tracked.owner[row as usize * 1000..][..50].to_vec())).collect();
    drop(tracked);
    assert_eq!(read(&mut reader), expected);
}

#[test]
fn views_under_a_null_are_not_followed() {
    let coordinator = coordinator(BUDGET_BYTES, BUDGET_BYTES);
    let (mut writer, mut reader) = log(1, &coordinator, Arc::new(NoWake));
    let tracked = Tracked::new(1000);
    // A view of nowhere, and a good one of a buffer that is not used otherwise.
    let views = [u128::MAX, tracked.view(0, 900, 1), make_view(b"short", 0, 0), tracked.view(5, 20, 2)];
    let other = Tracked::new(80);
    let payloads = vec![tracked.buffer().into(), tracked.buffer().into(), other.buffer().into()];
    assert!(writer.room() >= 4);
    writer.append(&[piece(&views, &payloads, Some(&[0, 0, 1, 1]))], 0, 4);
    drop(payloads);
    assert_eq!((tracked.holders(), other.holders()), (0, 1));
    assert_eq!(pinned(&coordinator), 80);
    assert_eq!(
        read(&mut reader),
        [None, None, Some(b"short".to_vec()), Some(other.owner[5..25].to_vec())],
        "both buffers have the same bytes at the same places"
    );
}

#[test]
fn a_buffer_is_charged_once_per_chunk() {
    let coordinator = coordinator(BUDGET_BYTES, BUDGET_BYTES);
    let (mut writer, mut reader) = log(2, &coordinator, Arc::new(NoWake));
    let tracked = Tracked::new(1000);
    // Two slices of the same memory, as the columns of a sliced batch would be.
    let (whole, half) = (tracked.buffer(), tracked.buffer().slice(500));
    let left: Vec<u128> = (0..4).map(|row| tracked.view(row * 100, 100, 0)).collect();
    let right: Vec<u128> =
        (0..4).map(|row| make_view(&tracked.owner[500 + row * 100..][..100], 0, row as u32 * 100)).collect();
    for _ in 0..4 {
        assert!(writer.room() >= 4);
        let (whole, half) = (vec![whole.clone().into()], vec![half.clone().into()]);
        writer.append(&[piece(&left, &whole, None), piece(&right, &half, None)], 0, 4);
        assert_eq!(pinned(&coordinator), 1000);
    }
    while let BlockNext::Rows(lease) = reader.peek(usize::MAX) {
        for (column, first) in [(0, 0), (1, 500)] {
            let (views, payloads) = lease.column(column).views();
            for (row, &view) in views.iter().enumerate() {
                let expected = &tracked.owner[first + row % 4 * 100..][..100];
                with_bytes(view, payloads, |found| assert_eq!(found, expected, "column {column}, row {row}"));
            }
        }
        let rows = lease.rows();
        drop(lease);
        reader.advance(rows);
    }
    drop((writer, reader, whole, half));
    assert_eq!((tracked.holders(), pinned(&coordinator)), (0, 0));
}

#[derive(Default)]
struct Counter(AtomicU64);

impl Wake for Counter {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn payload_over_the_cap_holds_the_writer_back_until_it_is_read() {
    let coordinator = coordinator(BUDGET_BYTES, 1 << 20);
    let woken = Arc::new(Counter::default());
    let (mut writer, mut reader) = log(1, &coordinator, Arc::clone(&woken) as _);
    for round in 0..5 {
        let tracked = Tracked::new(2 << 20);
        write(&mut writer, &[tracked.view(0, 1 << 20, 0)], tracked.buffer());
        assert_eq!(writer.room(), 0, "round {round}: 2 MiB are more than the log may have");
        let asleep = woken.0.load(Ordering::SeqCst);
        assert_eq!(read(&mut reader), [Some(tracked.owner[..1 << 20].to_vec())]);
        assert!(woken.0.load(Ordering::SeqCst) > asleep, "round {round}: a reader wakes the writer");
        eventually("there is room when all is read", || (writer.room() > 0, round));
        // BLOCK_LOG-3 lets the writer proceed, and with the chunk its payload is released. After much payload, chunks
        // take few rows at first.
        let mut more = 0;
        while more < CHUNK_ROWS - 1 {
            eventually("there is room", || (writer.room() > 0, more));
            let some = writer.room().min(CHUNK_ROWS - 1 - more);
            write(&mut writer, &vec![make_view(b"short", 0, 0); some], Buffer::from_vec(Vec::<u8>::new()));
            more += read(&mut reader).len();
        }
        writer.trim();
        assert_eq!((tracked.holders(), pinned(&coordinator)), (0, 0), "round {round}");
    }
}

#[test]
fn values_outlive_the_writer_and_the_reader_in_a_lease() {
    let coordinator = coordinator(BUDGET_BYTES, BUDGET_BYTES);
    let (mut writer, mut reader) = log(1, &coordinator, Arc::new(NoWake));
    let tracked = Tracked::new(1000);
    write(&mut writer, &[tracked.view(0, 1000, 0)], tracked.buffer());
    let BlockNext::Rows(lease) = reader.peek(1) else { panic!("a row was written") };
    reader.advance(1);
    drop((writer, reader));
    let (views, payloads) = lease.column(0).views();
    with_bytes(views[0], payloads, |found| assert_eq!(found, &tracked.owner[..]));
    assert_eq!(tracked.holders(), 1);
    drop(lease);
    assert_eq!(tracked.holders(), 0);
    assert_all_returned(&coordinator);
}

/// As buffers of foreign arrays do: each ends where its own last value ends.
#[test]
fn buffers_that_start_at_one_place_and_end_elsewhere_are_told_apart() {
    let coordinator = coordinator(BUDGET_BYTES, BUDGET_BYTES);
    let (mut writer, mut reader) = log(1, &coordinator, Arc::new(NoWake));
    let whole = Buffer::from_vec((0..4000).map(|byte| byte as u8).collect::<Vec<u8>>());
    let view = |from: usize, len: usize| make_view(&whole[from..from + len], 0, from as u32);
    write(&mut writer, &[view(0, 1000)], whole.slice_with_length(0, 1000));
    write(&mut writer, &[view(0, 1500), view(2000, 2000)], whole.clone());
    let found: Vec<Vec<u8>> = read(&mut reader).into_iter().flatten().collect();
    assert_eq!(found, [&whole[..1000], &whole[..1500], &whole[2000..]]);
}

/// A reader that keeps up holds nothing back, and rows it has read must not pile up until a chunk is full.
#[test]
fn payload_stays_near_the_cap_with_a_reader_that_keeps_up() {
    const CAP_BYTES: usize = 1 << 20;
    let coordinator = coordinator(BUDGET_BYTES, CAP_BYTES);
    let layout = Layout::new(vec![ColumnKind { physical: Physical::View, nullable: false }]);
    let shape = ShapeOptions::for_export(&layout);
    let options = LogOptions { shape, ..LogOptions::default() };
    let mut writer = LogWriter::new(layout, &options, &coordinator, Arc::new(NoWake)).unwrap();
    let mut reader = writer.join(Arc::new(NoWake));
    let mut most = 0;
    for row in 0..20_000_u32 {
        let bytes: Vec<u8> = row.to_le_bytes().repeat(1000);
        eventually("there is room", || (writer.room() > 0, row));
        write(&mut writer, &[make_view(&bytes, 0, 0)], Buffer::from_vec(bytes.clone()));
        assert_eq!(read(&mut reader), [Some(bytes)]);
        most = most.max(pinned(&coordinator));
    }
    // The first chunk is filled before the payload per row is known: 16 KiB of views.
    assert!(most <= 5 << 20, "{most} bytes of payload kept alive");
}
