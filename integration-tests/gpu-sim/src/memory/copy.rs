//! Copies and fills.
//!
//! Rules. An argument that must be device memory and lies in no mapping, or in one that no device has a right to, is an
//! invalid value at the call, as measured on an H200. What went away before the work ran is an illegal address and the
//! context's end. Pieces are checked one by one, so an unmap takes effect in the middle of a copy. A copy between pageable host memory and a device does
//! not return before the host side has been read or written; one with pinned memory runs on the stream's worker.

use crate::api::{In, api};
use crate::context::{self, Context};
use crate::driver::Driver;
use crate::error::{ERROR_INVALID_VALUE, ERROR_NOT_SUPPORTED, Res};
use crate::link;
use crate::memory::array;
use crate::memory::multicast;
use crate::memory::space::{Who, in_window};
use crate::stream::{self, Null};
use crate::task::Task;

/// A copy of up to three dimensions.
pub struct Copy {
    pub to: Side,
    pub from: Side,
    pub width: u64,
    pub height: u64,
    pub depth: u64,
    /// Pageable source bytes, taken at the call; then `from` counts from its start.
    staged: Option<Vec<u8>>,
}

/// One end of a copy.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    pub address: u64,
    pub pitch: u64,
    pub slice: u64,
}

/// A fill: `height` rows of `width` elements.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    pub address: u64,
    pub pitch: u64,
    pub value: u32,
    pub element: u32,
    pub width: u64,
    pub height: u64,
}

/// A side, and what it must be.
type End = (Side, Kind);

/// What an argument must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Host,
    Device,
    /// Either: the address tells.
    Unified,
}

fn flat(address: u64) -> Side {
    Side {
        address,
        pitch: 0,
        slice: 0,
    }
}

fn check(driver: &Driver, (side, kind): End, write: bool) -> Res {
    if side.address == 0 {
        return Err(ERROR_INVALID_VALUE);
    }
    match kind {
        Kind::Device => driver.space.read().require(side.address, write),
        Kind::Unified if in_window(side.address) => {
            driver.space.read().require(side.address, write)
        }
        // With unified addressing a device pointer will do as a host pointer.
        Kind::Host if in_window(side.address) => driver.space.read().require(side.address, write),
        Kind::Host | Kind::Unified => Ok(()),
    }
}

/// Whether an address is host memory that the driver does not know.
fn pageable(driver: &Driver, address: u64) -> bool {
    !in_window(address) && driver.space.read().host(address, 1).is_none()
}

#[allow(clippy::too_many_arguments)]
fn start(
    driver: &'static Driver,
    to: End,
    from: End,
    size: [u64; 3],
    stream: u64,
    null: Null,
    wait: bool,
) -> Res {
    let [width, height, depth] = size;
    if wait {
        context::current(driver)?;
    }
    let stream = stream::get(driver, stream, null)?;
    stream.context.healthy()?;
    if width == 0 || height == 0 || depth == 0 {
        return Ok(());
    }
    check(driver, to, true)?;
    check(driver, from, false)?;
    let mut copy = Copy {
        to: to.0,
        from: from.0,
        width,
        height,
        depth,
        staged: None,
    };
    let capturing = stream.capturing();
    if wait && capturing {
        stream.invalidate_capture();
        return Err(crate::error::ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    let mut blocking = wait;
    if !wait && !capturing {
        if pageable(driver, copy.to.address) {
            blocking = true;
        } else if pageable(driver, copy.from.address) {
            copy.stage();
        }
    }
    let ticket = stream.perform(driver, Task::Copy(copy))?;
    if let Some(ticket) = ticket.filter(|_| blocking) {
        ticket.wait(None);
        stream.context.healthy()?;
    }
    Ok(())
}

impl Copy {
    /// A copy for a graph node, checked when it runs.
    pub fn new(to: Side, from: Side, width: u64, height: u64, depth: u64) -> Self {
        Self {
            to,
            from,
            width,
            height,
            depth,
            staged: None,
        }
    }

    fn stage(&mut self) {
        let mut bytes = Vec::with_capacity((self.width * self.height * self.depth) as usize);
        for z in 0..self.depth {
            for y in 0..self.height {
                let row = self.from.address + z * self.from.slice + y * self.from.pitch;
                // SAFETY: the caller promised that the source is readable for the whole copy.
                bytes.extend_from_slice(unsafe {
                    std::slice::from_raw_parts(row as *const u8, self.width as usize)
                });
            }
        }
        self.from = Side {
            address: 0,
            pitch: self.width,
            slice: self.width * self.height,
        };
        self.staged = Some(bytes);
    }
}

/// Runs a copy.
pub fn run(driver: &'static Driver, context: &Context, copy: &Copy) -> Res {
    let base = copy
        .staged
        .as_ref()
        .map_or(0, |bytes| bytes.as_ptr() as u64);
    for z in 0..copy.depth {
        for y in 0..copy.height {
            let to = copy.to.address + z * copy.to.slice + y * copy.to.pitch;
            let from = base + copy.from.address + z * copy.from.slice + y * copy.from.pitch;
            row(driver, context, to, from, copy.width)?;
        }
    }
    Ok(())
}

fn row(driver: &'static Driver, context: &Context, to: u64, from: u64, width: u64) -> Res {
    let crosses = in_window(to) != in_window(from);
    let mut done = 0;
    while done < width {
        let piece = link::PIECE.min(width - done);
        if crosses && driver.config.link_mbps.is_some() {
            let device = if in_window(to) { to } else { from };
            link::cross(&driver.config, link_of(driver, context, device), piece);
        }
        let tables = driver.space.read();
        let side = |address: u64, write| {
            if in_window(address) {
                tables.resolve(address, piece, write, Who::Copy)
            } else {
                Ok(address as *mut u8)
            }
        };
        let (target, source) = (side(to + done, true)?, side(from + done, false)?);
        // SAFETY: device sides were resolved for `piece` bytes while the table is held; host sides are the caller's.
        unsafe { std::ptr::copy(source, target, piece as usize) };
        let flip = driver
            .config
            .flip
            .as_ref()
            .filter(|_| crosses && in_window(to) && piece >= 4096);
        if flip.is_some_and(|file| std::fs::remove_file(file).is_ok()) {
            // SAFETY: just written, `piece` bytes, and held as above.
            unsafe { *target.add(piece as usize / 2) ^= 0x10 };
        }
        if let Some((object, offset)) = in_window(to).then(|| tables.multicast(to + done)).flatten()
        {
            // SAFETY: just written, `piece` bytes, and held as above.
            let written = unsafe { std::slice::from_raw_parts(target, piece as usize) };
            multicast::write(&object, offset, written)?;
        }
        drop(tables);
        done += piece;
    }
    Ok(())
}

/// The device on this node whose link a copy crosses.
fn link_of(driver: &Driver, context: &Context, address: u64) -> usize {
    let tables = driver.space.read();
    let mapping = crate::memory::space::holding(&tables.mappings, address, |mapping| mapping.size);
    let ordinal = mapping.map_or(context.ordinal, |(_, mapping)| mapping.phys.ordinal);
    drop(tables);
    driver
        .devices
        .get(ordinal)
        .and_then(|device| device.backing().ok())
        .map_or(0, |backing| backing.index)
}

/// Runs a fill.
pub fn fill(driver: &'static Driver, fill: &Fill) -> Res {
    let element = u64::from(fill.element);
    for y in 0..fill.height {
        let row = fill.address + y * fill.pitch;
        let tables = driver.space.read();
        let at = tables.resolve(row, fill.width * element, true, Who::Copy)?;
        if tables.multicast(row).is_some() {
            return Err(ERROR_NOT_SUPPORTED);
        }
        // SAFETY: resolved for the whole row while the table is held; addresses are aligned to the element.
        unsafe {
            match fill.element {
                1 => at.write_bytes(fill.value as u8, fill.width as usize),
                2 => (0..fill.width as usize)
                    .for_each(|i| at.cast::<u16>().add(i).write_unaligned(fill.value as u16)),
                _ => (0..fill.width as usize)
                    .for_each(|i| at.cast::<u32>().add(i).write_unaligned(fill.value)),
            }
        }
    }
    Ok(())
}

fn start_fill(driver: &'static Driver, fill: Fill, stream: u64, null: Null, sync: bool) -> Res {
    let stream = stream::get(driver, stream, null)?;
    stream.context.healthy()?;
    if fill.width == 0 || fill.height == 0 {
        return Ok(());
    }
    driver.space.read().require(fill.address, true)?;
    let element = u64::from(fill.element);
    if !fill.address.is_multiple_of(element)
        || fill.height > 1 && !fill.pitch.is_multiple_of(element)
    {
        return Err(ERROR_INVALID_VALUE);
    }
    if sync && stream.capturing() {
        stream.invalidate_capture();
        return Err(crate::error::ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    // As on the real driver, the call does not wait for the device.
    stream.perform(driver, Task::Fill(fill)).map(drop)
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, std::marker::Copy)]
pub struct Memcpy2D {
    from_x: usize,
    from_y: usize,
    from_kind: i32,
    from_host: u64,
    from_device: u64,
    from_array: u64,
    from_pitch: usize,
    to_x: usize,
    to_y: usize,
    to_kind: i32,
    to_host: u64,
    to_device: u64,
    to_array: u64,
    to_pitch: usize,
    width: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`; `CUDA_MEMCPY3D_PEER` has contexts in the reserved places.
#[repr(C)]
#[derive(Clone, std::marker::Copy, Debug, Default)]
pub struct Memcpy3D {
    pub from_x: usize,
    pub from_y: usize,
    pub from_z: usize,
    pub from_lod: usize,
    pub from_kind: i32,
    pub from_host: u64,
    pub from_device: u64,
    pub from_array: u64,
    pub from_reserved: u64,
    pub from_pitch: usize,
    pub from_height: usize,
    pub to_x: usize,
    pub to_y: usize,
    pub to_z: usize,
    pub to_lod: usize,
    pub to_kind: i32,
    pub to_host: u64,
    pub to_device: u64,
    pub to_array: u64,
    pub to_reserved: u64,
    pub to_pitch: usize,
    pub to_height: usize,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

const _: () = assert!(size_of::<Memcpy2D>() == 128 && size_of::<Memcpy3D>() == 200);

/// One side of a structured copy, moved to its start.
fn side(
    driver: &Driver,
    kind: i32,
    [host, device, array]: [u64; 3],
    at: [usize; 3],
    pitch: usize,
    rows: usize,
    width: usize,
) -> Res<End> {
    let array = if kind == 3 {
        Some(array::get(driver, array)?)
    } else {
        None
    };
    let (address, kind) = match kind {
        1 => (host, Kind::Host),
        2 => (device, Kind::Device),
        4 => (device, Kind::Unified),
        3 => (
            array.as_ref().map_or(0, |array| array.address),
            Kind::Device,
        ),
        _ => return Err(ERROR_INVALID_VALUE),
    };
    // An array has its own.
    let (pitch, rows) = match &array {
        Some(array) => (array.row(), array.rows()),
        None => (if pitch == 0 { width } else { pitch }, rows),
    };
    if pitch < width || array.is_some() && at[0] + width > pitch {
        return Err(ERROR_INVALID_VALUE);
    }
    let slice = pitch * rows;
    let offset = at[0] + at[1] * pitch + at[2] * slice;
    Ok((
        Side {
            address: address + offset as u64,
            pitch: pitch as u64,
            slice: slice as u64,
        },
        kind,
    ))
}

/// Both sides and the size of a three-dimensional copy.
fn sides3(driver: &Driver, copy: &Memcpy3D) -> Res<(End, End, [u64; 3])> {
    let (fx, fh) = (
        [copy.from_x, copy.from_y, copy.from_z],
        copy.from_height.max(copy.height),
    );
    let (tx, th) = (
        [copy.to_x, copy.to_y, copy.to_z],
        copy.to_height.max(copy.height),
    );
    let from = side(
        driver,
        copy.from_kind,
        [copy.from_host, copy.from_device, copy.from_array],
        fx,
        copy.from_pitch,
        fh,
        copy.width,
    )?;
    let to = side(
        driver,
        copy.to_kind,
        [copy.to_host, copy.to_device, copy.to_array],
        tx,
        copy.to_pitch,
        th,
        copy.width,
    )?;
    Ok((
        to,
        from,
        [copy.width as u64, copy.height as u64, copy.depth as u64],
    ))
}

/// The copy of a graph node.
pub fn node(driver: &Driver, params: &Memcpy3D) -> Res<Copy> {
    let (to, from, size) = sides3(driver, params)?;
    check(driver, to, true)?;
    check(driver, from, false)?;
    Ok(Copy::new(to.0, from.0, size[0], size[1], size[2]))
}

/// What a graph node says about its copy.
pub fn describe(copy: &Copy) -> Memcpy3D {
    let (from_host, from_device, from_kind) = if in_window(copy.from.address) {
        (0, copy.from.address, 2)
    } else {
        (copy.from.address, 0, 1)
    };
    let (to_host, to_device, to_kind) = if in_window(copy.to.address) {
        (0, copy.to.address, 2)
    } else {
        (copy.to.address, 0, 1)
    };
    Memcpy3D {
        from_kind,
        from_host,
        from_device,
        from_pitch: copy.from.pitch as usize,
        from_height: copy.height as usize,
        to_kind,
        to_host,
        to_device,
        to_pitch: copy.to.pitch as usize,
        to_height: copy.height as usize,
        width: copy.width as usize,
        height: copy.height as usize,
        depth: copy.depth as usize,
        ..Memcpy3D::default()
    }
}

fn copy2(driver: &'static Driver, copy: In<Memcpy2D>, stream: u64, null: Null, wait: bool) -> Res {
    let c = copy.get()?;
    let from = side(
        driver,
        c.from_kind,
        [c.from_host, c.from_device, c.from_array],
        [c.from_x, c.from_y, 0],
        c.from_pitch,
        0,
        c.width,
    )?;
    let to = side(
        driver,
        c.to_kind,
        [c.to_host, c.to_device, c.to_array],
        [c.to_x, c.to_y, 0],
        c.to_pitch,
        0,
        c.width,
    )?;
    start(
        driver,
        to,
        from,
        [c.width as u64, c.height as u64, 1],
        stream,
        null,
        wait,
    )
}

fn copy3(driver: &'static Driver, copy: In<Memcpy3D>, stream: u64, null: Null, wait: bool) -> Res {
    let (to, from, size) = sides3(driver, &copy.get()?)?;
    start(driver, to, from, size, stream, null, wait)
}

fn copy1(
    driver: &'static Driver,
    to: (u64, Kind),
    from: (u64, Kind),
    size: usize,
    on: (u64, Null),
    wait: bool,
) -> Res {
    start(
        driver,
        (flat(to.0), to.1),
        (flat(from.0), from.1),
        [size as u64, 1, 1],
        on.0,
        on.1,
        wait,
    )
}

fn fill1(
    driver: &'static Driver,
    address: u64,
    value: u32,
    element: u32,
    width: usize,
    on: (u64, Null),
    sync: bool,
) -> Res {
    fill2(driver, address, 0, value, element, (width, 1), on, sync)
}

#[allow(clippy::too_many_arguments)]
fn fill2(
    driver: &'static Driver,
    address: u64,
    pitch: usize,
    value: u32,
    element: u32,
    (width, height): (usize, usize),
    on: (u64, Null),
    sync: bool,
) -> Res {
    let fill = Fill {
        address,
        pitch: pitch as u64,
        value,
        element,
        width: width as u64,
        height: height as u64,
    };
    start_fill(driver, fill, on.0, on.1, sync)
}

fn batch(
    driver: &'static Driver,
    to: In<u64>,
    from: In<u64>,
    sizes: In<usize>,
    count: usize,
    on: (u64, Null),
) -> Res {
    if matches!(on.0, 0..=1) && on.1 == Null::Legacy {
        return Err(ERROR_INVALID_VALUE); // the legacy stream is not allowed here
    }
    for index in 0..count {
        let (to, from) = (
            (to.at(index)?, Kind::Unified),
            (from.at(index)?, Kind::Unified),
        );
        copy1(driver, to, from, sizes.at(index)?, on, false)?;
    }
    Ok(())
}

const LEGACY: (u64, Null) = (0, Null::Legacy);
const PER_THREAD: (u64, Null) = (0, Null::PerThread);
use Kind::{Device, Host, Unified};

api! { TABLE;
    3020 fn cuMemcpyHtoD_v2(to: u64, from: u64, size: usize) |d| {
        copy1(d, (to, Device), (from, Host), size, LEGACY, true)
    }
    7000 fn cuMemcpyHtoD_v2_ptds(to: u64, from: u64, size: usize) |d| {
        copy1(d, (to, Device), (from, Host), size, PER_THREAD, true)
    }
    3020 fn cuMemcpyDtoH_v2(to: u64, from: u64, size: usize) |d| {
        copy1(d, (to, Host), (from, Device), size, LEGACY, true)
    }
    7000 fn cuMemcpyDtoH_v2_ptds(to: u64, from: u64, size: usize) |d| {
        copy1(d, (to, Host), (from, Device), size, PER_THREAD, true)
    }
    3020 fn cuMemcpyDtoD_v2(to: u64, from: u64, size: usize) |d| {
        copy1(d, (to, Device), (from, Device), size, LEGACY, true)
    }
    7000 fn cuMemcpyDtoD_v2_ptds(to: u64, from: u64, size: usize) |d| {
        copy1(d, (to, Device), (from, Device), size, PER_THREAD, true)
    }
    4000 fn cuMemcpy(to: u64, from: u64, size: usize) |d| {
        copy1(d, (to, Unified), (from, Unified), size, LEGACY, true)
    }
    7000 fn cuMemcpy_ptds(to: u64, from: u64, size: usize) |d| {
        copy1(d, (to, Unified), (from, Unified), size, PER_THREAD, true)
    }
    3020 fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, size: usize, stream: u64) |d| {
        copy1(d, (to, Device), (from, Host), size, (stream, Null::Legacy), false)
    }
    7000 fn cuMemcpyHtoDAsync_v2_ptsz(to: u64, from: u64, size: usize, stream: u64) |d| {
        copy1(d, (to, Device), (from, Host), size, (stream, Null::PerThread), false)
    }
    3020 fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, size: usize, stream: u64) |d| {
        copy1(d, (to, Host), (from, Device), size, (stream, Null::Legacy), false)
    }
    7000 fn cuMemcpyDtoHAsync_v2_ptsz(to: u64, from: u64, size: usize, stream: u64) |d| {
        copy1(d, (to, Host), (from, Device), size, (stream, Null::PerThread), false)
    }
    3020 fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, size: usize, stream: u64) |d| {
        copy1(d, (to, Device), (from, Device), size, (stream, Null::Legacy), false)
    }
    7000 fn cuMemcpyDtoDAsync_v2_ptsz(to: u64, from: u64, size: usize, stream: u64) |d| {
        copy1(d, (to, Device), (from, Device), size, (stream, Null::PerThread), false)
    }
    4000 fn cuMemcpyAsync(to: u64, from: u64, size: usize, stream: u64) |d| {
        copy1(d, (to, Unified), (from, Unified), size, (stream, Null::Legacy), false)
    }
    7000 fn cuMemcpyAsync_ptsz(to: u64, from: u64, size: usize, stream: u64) |d| {
        copy1(d, (to, Unified), (from, Unified), size, (stream, Null::PerThread), false)
    }
    4000 fn cuMemcpyPeer(to: u64, _to_context: u64, from: u64, _from_context: u64, size: usize) |d| {
        copy1(d, (to, Device), (from, Device), size, LEGACY, true)
    }
    7000 fn cuMemcpyPeer_ptds(to: u64, _to_context: u64, from: u64, _from_context: u64, size: usize) |d| {
        copy1(d, (to, Device), (from, Device), size, PER_THREAD, true)
    }
    4000 fn cuMemcpyPeerAsync(to: u64, _to_context: u64, from: u64, _from_context: u64, size: usize, stream: u64) |d| {
        copy1(d, (to, Device), (from, Device), size, (stream, Null::Legacy), false)
    }
    7000 fn cuMemcpyPeerAsync_ptsz(
        to: u64,
        _to_context: u64,
        from: u64,
        _from_context: u64,
        size: usize,
        stream: u64,
    ) |d| {
        copy1(d, (to, Device), (from, Device), size, (stream, Null::PerThread), false)
    }
    3020 fn cuMemcpy2D_v2(copy: In<Memcpy2D>) |d| { copy2(d, copy, 0, Null::Legacy, true) }
    7000 fn cuMemcpy2D_v2_ptds(copy: In<Memcpy2D>) |d| { copy2(d, copy, 0, Null::PerThread, true) }
    3020 fn cuMemcpy2DUnaligned_v2(copy: In<Memcpy2D>) |d| { copy2(d, copy, 0, Null::Legacy, true) }
    7000 fn cuMemcpy2DUnaligned_v2_ptds(copy: In<Memcpy2D>) |d| { copy2(d, copy, 0, Null::PerThread, true) }
    3020 fn cuMemcpy2DAsync_v2(copy: In<Memcpy2D>, stream: u64) |d| { copy2(d, copy, stream, Null::Legacy, false) }
    7000 fn cuMemcpy2DAsync_v2_ptsz(copy: In<Memcpy2D>, stream: u64) |d| {
        copy2(d, copy, stream, Null::PerThread, false)
    }
    3020 fn cuMemcpy3D_v2(copy: In<Memcpy3D>) |d| { copy3(d, copy, 0, Null::Legacy, true) }
    7000 fn cuMemcpy3D_v2_ptds(copy: In<Memcpy3D>) |d| { copy3(d, copy, 0, Null::PerThread, true) }
    4000 fn cuMemcpy3DPeer(copy: In<Memcpy3D>) |d| { copy3(d, copy, 0, Null::Legacy, true) }
    7000 fn cuMemcpy3DPeer_ptds(copy: In<Memcpy3D>) |d| { copy3(d, copy, 0, Null::PerThread, true) }
    3020 fn cuMemcpy3DAsync_v2(copy: In<Memcpy3D>, stream: u64) |d| { copy3(d, copy, stream, Null::Legacy, false) }
    7000 fn cuMemcpy3DAsync_v2_ptsz(copy: In<Memcpy3D>, stream: u64) |d| {
        copy3(d, copy, stream, Null::PerThread, false)
    }
    4000 fn cuMemcpy3DPeerAsync(copy: In<Memcpy3D>, stream: u64) |d| { copy3(d, copy, stream, Null::Legacy, false) }
    7000 fn cuMemcpy3DPeerAsync_ptsz(copy: In<Memcpy3D>, stream: u64) |d| {
        copy3(d, copy, stream, Null::PerThread, false)
    }
    13000 fn cuMemcpyBatchAsync_v2(
        to: In<u64>,
        from: In<u64>,
        sizes: In<usize>,
        count: usize,
        _attributes: u64,
        _indices: u64,
        _number: usize,
        stream: u64,
    ) |d| {
        batch(d, to, from, sizes, count, (stream, Null::Legacy))
    }
    12080 fn cuMemcpyBatchAsync(
        to: In<u64>,
        from: In<u64>,
        sizes: In<usize>,
        count: usize,
        _attributes: u64,
        _indices: u64,
        _number: usize,
        _failed: u64,
        stream: u64,
    ) |d| {
        batch(d, to, from, sizes, count, (stream, Null::Legacy))
    }
    13000 fn cuMemcpyBatchAsync_v2_ptsz(
        to: In<u64>,
        from: In<u64>,
        sizes: In<usize>,
        count: usize,
        _attributes: u64,
        _indices: u64,
        _number: usize,
        stream: u64,
    ) |d| {
        batch(d, to, from, sizes, count, (stream, Null::PerThread))
    }
    12080 fn cuMemcpyBatchAsync_ptsz(
        to: In<u64>,
        from: In<u64>,
        sizes: In<usize>,
        count: usize,
        _attributes: u64,
        _indices: u64,
        _number: usize,
        _failed: u64,
        stream: u64,
    ) |d| {
        batch(d, to, from, sizes, count, (stream, Null::PerThread))
    }
    3020 fn cuMemsetD8_v2(address: u64, value: u8, count: usize) |d| {
        fill1(d, address, u32::from(value), 1, count, LEGACY, true)
    }
    3020 fn cuMemsetD2D8_v2(address: u64, pitch: usize, value: u8, width: usize, height: usize) |d| {
        fill2(d, address, pitch, u32::from(value), 1, (width, height), LEGACY, true)
    }
    7000 fn cuMemsetD8_v2_ptds(address: u64, value: u8, count: usize) |d| {
        fill1(d, address, u32::from(value), 1, count, PER_THREAD, true)
    }
    7000 fn cuMemsetD2D8_v2_ptds(address: u64, pitch: usize, value: u8, width: usize, height: usize) |d| {
        fill2(d, address, pitch, u32::from(value), 1, (width, height), PER_THREAD, true)
    }
    3020 fn cuMemsetD8Async(address: u64, value: u8, count: usize, stream: u64) |d| {
        fill1(d, address, u32::from(value), 1, count, (stream, Null::Legacy), false)
    }
    3020 fn cuMemsetD2D8Async(address: u64, pitch: usize, value: u8, width: usize, height: usize, stream: u64) |d| {
        fill2(d, address, pitch, u32::from(value), 1, (width, height), (stream, Null::Legacy), false)
    }
    7000 fn cuMemsetD8Async_ptsz(address: u64, value: u8, count: usize, stream: u64) |d| {
        fill1(d, address, u32::from(value), 1, count, (stream, Null::PerThread), false)
    }
    7000 fn cuMemsetD2D8Async_ptsz(
        address: u64,
        pitch: usize,
        value: u8,
        width: usize,
        height: usize,
        stream: u64,
    ) |d| {
        fill2(d, address, pitch, u32::from(value), 1, (width, height), (stream, Null::PerThread), false)
    }
    3020 fn cuMemsetD16_v2(address: u64, value: u16, count: usize) |d| {
        fill1(d, address, u32::from(value), 2, count, LEGACY, true)
    }
    3020 fn cuMemsetD2D16_v2(address: u64, pitch: usize, value: u16, width: usize, height: usize) |d| {
        fill2(d, address, pitch, u32::from(value), 2, (width, height), LEGACY, true)
    }
    7000 fn cuMemsetD16_v2_ptds(address: u64, value: u16, count: usize) |d| {
        fill1(d, address, u32::from(value), 2, count, PER_THREAD, true)
    }
    7000 fn cuMemsetD2D16_v2_ptds(address: u64, pitch: usize, value: u16, width: usize, height: usize) |d| {
        fill2(d, address, pitch, u32::from(value), 2, (width, height), PER_THREAD, true)
    }
    3020 fn cuMemsetD16Async(address: u64, value: u16, count: usize, stream: u64) |d| {
        fill1(d, address, u32::from(value), 2, count, (stream, Null::Legacy), false)
    }
    3020 fn cuMemsetD2D16Async(address: u64, pitch: usize, value: u16, width: usize, height: usize, stream: u64) |d| {
        fill2(d, address, pitch, u32::from(value), 2, (width, height), (stream, Null::Legacy), false)
    }
    7000 fn cuMemsetD16Async_ptsz(address: u64, value: u16, count: usize, stream: u64) |d| {
        fill1(d, address, u32::from(value), 2, count, (stream, Null::PerThread), false)
    }
    7000 fn cuMemsetD2D16Async_ptsz(
        address: u64,
        pitch: usize,
        value: u16,
        width: usize,
        height: usize,
        stream: u64,
    ) |d| {
        fill2(d, address, pitch, u32::from(value), 2, (width, height), (stream, Null::PerThread), false)
    }
    3020 fn cuMemsetD32_v2(address: u64, value: u32, count: usize) |d| {
        fill1(d, address, value, 4, count, LEGACY, true)
    }
    3020 fn cuMemsetD2D32_v2(address: u64, pitch: usize, value: u32, width: usize, height: usize) |d| {
        fill2(d, address, pitch, value, 4, (width, height), LEGACY, true)
    }
    7000 fn cuMemsetD32_v2_ptds(address: u64, value: u32, count: usize) |d| {
        fill1(d, address, value, 4, count, PER_THREAD, true)
    }
    7000 fn cuMemsetD2D32_v2_ptds(address: u64, pitch: usize, value: u32, width: usize, height: usize) |d| {
        fill2(d, address, pitch, value, 4, (width, height), PER_THREAD, true)
    }
    3020 fn cuMemsetD32Async(address: u64, value: u32, count: usize, stream: u64) |d| {
        fill1(d, address, value, 4, count, (stream, Null::Legacy), false)
    }
    3020 fn cuMemsetD2D32Async(address: u64, pitch: usize, value: u32, width: usize, height: usize, stream: u64) |d| {
        fill2(d, address, pitch, value, 4, (width, height), (stream, Null::Legacy), false)
    }
    7000 fn cuMemsetD32Async_ptsz(address: u64, value: u32, count: usize, stream: u64) |d| {
        fill1(d, address, value, 4, count, (stream, Null::PerThread), false)
    }
    7000 fn cuMemsetD2D32Async_ptsz(
        address: u64,
        pitch: usize,
        value: u32,
        width: usize,
        height: usize,
        stream: u64,
    ) |d| {
        fill2(d, address, pitch, value, 4, (width, height), (stream, Null::PerThread), false)
    }
}
