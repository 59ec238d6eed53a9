//! Events: points in streams, with the time they were reached.
//!
//! Rules. An event that was never recorded is complete. Waiting or asking concerns the last recording. An event
//! recorded in a capturing stream is part of the capture and can be neither asked nor waited for.

use crate::api::{Out, api};
use crate::context;
use crate::driver::Driver;
use crate::error::{
    ERROR_CAPTURED_EVENT, ERROR_INVALID_HANDLE, ERROR_INVALID_VALUE, ERROR_NOT_READY,
    ERROR_NOT_SUPPORTED, Res,
};
use crate::stream::{self, Capture, Null, Ticket, Work};
use crate::sync::lock;
use std::sync::{Arc, Mutex};
use std::time::Instant;

const DISABLE_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;

/// An event.
pub struct Event {
    flags: u32,
    state: Mutex<State>,
}

/// A capture and the nodes in it that an event stands for.
pub type Captured = (Arc<Capture>, Vec<usize>);

#[derive(Default)]
struct State {
    recording: u64,
    ticket: Option<Ticket>,
    reached: Option<Instant>,
    captured: Option<Captured>,
}

impl Event {
    /// Called when the stream gets to a recording.
    pub fn reached(&self, recording: u64) {
        let mut state = lock(&self.state);
        if state.recording == recording {
            state.reached = Some(Instant::now());
        }
    }

    /// The last recording: in a stream or in a capture.
    pub fn last(&self) -> (Option<Ticket>, Option<Captured>) {
        let state = lock(&self.state);
        (state.ticket.clone(), state.captured.clone())
    }
}

/// The event with a handle.
pub fn get(driver: &Driver, handle: u64) -> Res<Arc<Event>> {
    driver.events.get(handle).ok_or(ERROR_INVALID_HANDLE)
}

fn create(driver: &Driver, out: Out<u64>, flags: u32) -> Res {
    out.check()?;
    context::current(driver)?;
    if flags & !7 != 0 || flags & (INTERPROCESS | DISABLE_TIMING) == INTERPROCESS {
        return Err(ERROR_INVALID_VALUE);
    }
    if flags & INTERPROCESS != 0 {
        return Err(ERROR_NOT_SUPPORTED);
    }
    out.set(
        driver
            .events
            .insert(|_| Event {
                flags,
                state: Mutex::default(),
            })
            .0,
    )
}

fn record(driver: &'static Driver, event: u64, stream: u64, flags: u32, null: Null) -> Res {
    if flags & !1 != 0 {
        return Err(ERROR_INVALID_VALUE);
    }
    let event = get(driver, event)?;
    let stream = stream::get(driver, stream, null)?;
    if let Some(capture) = stream.captured()? {
        let nodes = capture.tips(&stream);
        let mut state = lock(&event.state);
        state.captured = Some((capture, nodes));
        state.ticket = None;
        return Ok(());
    }
    let mut state = lock(&event.state);
    state.recording += 1;
    state.captured = None;
    state.reached = None;
    state.ticket = Some(stream.submit(driver, Work::Record(Arc::clone(&event), state.recording))?);
    Ok(())
}

/// The ticket of the last recording; an error if that is in a capture.
fn ticket(event: &Event) -> Res<Option<Ticket>> {
    match event.last() {
        (_, Some((capture, _))) => {
            capture.invalidate();
            Err(ERROR_CAPTURED_EVENT)
        }
        (ticket, None) => Ok(ticket),
    }
}

fn query(driver: &Driver, event: u64) -> Res {
    let event = get(driver, event)?;
    let ticket = ticket(&event)?;
    stream::refuse_in_capture(driver)?;
    match ticket {
        Some(ticket) if !ticket.done() => Err(ERROR_NOT_READY),
        Some(ticket) => ticket.context().healthy(),
        None => Ok(()),
    }
}

fn synchronize(driver: &Driver, event: u64) -> Res {
    let event = get(driver, event)?;
    let ticket = ticket(&event)?;
    stream::refuse_in_capture(driver)?;
    if let Some(ticket) = ticket {
        ticket.wait(None);
        ticket.context().healthy()?;
    }
    Ok(())
}

fn elapsed(driver: &Driver, out: Out<f32>, start: u64, end: u64) -> Res {
    let (start, end) = (get(driver, start)?, get(driver, end)?);
    if (start.flags | end.flags) & DISABLE_TIMING != 0 {
        return Err(ERROR_INVALID_HANDLE);
    }
    let mut times = [None; 2];
    for (time, event) in times.iter_mut().zip([&start, &end]) {
        let ticket = ticket(event)?.ok_or(ERROR_INVALID_HANDLE)?;
        ticket.context().healthy()?;
        *time = Some(
            if ticket.done() {
                lock(&event.state).reached
            } else {
                None
            }
            .ok_or(ERROR_NOT_READY)?,
        );
    }
    let [Some(start), Some(end)] = times else {
        return Err(ERROR_NOT_READY);
    };
    let forward = end.saturating_duration_since(start).as_secs_f64();
    let backward = start.saturating_duration_since(end).as_secs_f64();
    out.set(((forward - backward) * 1e3) as f32)
}

fn destroy(driver: &Driver, event: u64) -> Res {
    driver
        .events
        .remove(event)
        .map(drop)
        .ok_or(ERROR_INVALID_HANDLE)
}

api! { TABLE;
    2000 fn cuEventCreate(event: Out<u64>, flags: u32) |d| { create(d, event, flags) }
    2000 fn cuEventRecord(event: u64, stream: u64) |d| { record(d, event, stream, 0, Null::Legacy) }
    7000 fn cuEventRecord_ptsz(event: u64, stream: u64) |d| { record(d, event, stream, 0, Null::PerThread) }
    11010 fn cuEventRecordWithFlags(event: u64, stream: u64, flags: u32) |d| {
        record(d, event, stream, flags, Null::Legacy)
    }
    11010 fn cuEventRecordWithFlags_ptsz(event: u64, stream: u64, flags: u32) |d| {
        record(d, event, stream, flags, Null::PerThread)
    }
    2000 fn cuEventQuery(event: u64) @polled |d| { query(d, event) }
    2000 fn cuEventSynchronize(event: u64) @polled |d| { synchronize(d, event) }
    4000 fn cuEventDestroy_v2(event: u64) |d| { destroy(d, event) }
    2000 fn cuEventElapsedTime(ms: Out<f32>, start: u64, end: u64) @polled |d| { elapsed(d, ms, start, end) }
    12080 fn cuEventElapsedTime_v2(ms: Out<f32>, start: u64, end: u64) @polled |d| { elapsed(d, ms, start, end) }
}
