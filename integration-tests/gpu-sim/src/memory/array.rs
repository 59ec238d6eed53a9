//! Arrays: memory that only copies and textures reach, in a layout that is the driver's own (here: row by row).
//!
//! An array is native memory of its context: a checkpoint saves it with the rest of that, and it goes with the context.

use crate::api::{In, Out, api};
use crate::context;
use crate::driver::Driver;
use crate::error::{ERROR_INVALID_HANDLE, ERROR_INVALID_VALUE, Res};
use crate::memory::native;
use crate::stream;
use std::sync::Arc;

/// `CUDA_ARRAY_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Flat {
    width: usize,
    height: usize,
    format: i32,
    channels: u32,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Solid {
    width: usize,
    height: usize,
    depth: usize,
    format: i32,
    channels: u32,
    flags: u32,
}

const _: () = assert!(size_of::<Flat>() == 24 && size_of::<Solid>() == 40);

/// `CU_AD_FORMAT_FLOAT`, `CUDA_ARRAY3D_SURFACE_LDST`.
const FLOAT: i32 = 0x20;
const SURFACE: u32 = 2;

/// An array.
pub struct Array {
    /// Where its bytes are: no address that the program knows.
    pub address: u64,
    context: u64,
    shape: Solid,
}

impl Array {
    /// Bytes of a row.
    pub fn row(&self) -> usize {
        self.shape.width * element(&self.shape).unwrap_or(0)
    }

    /// Whether its elements are single floats.
    pub fn holds_floats(&self) -> bool {
        self.shape.format == FLOAT && self.shape.channels == 1
    }

    /// Whether it was made to be written through surfaces.
    pub fn is_for_surfaces(&self) -> bool {
        self.shape.flags & SURFACE != 0
    }

    /// Rows of a layer.
    pub fn rows(&self) -> usize {
        self.shape.height.max(1)
    }
}

fn element(shape: &Solid) -> Res<usize> {
    let bytes = match shape.format {
        0x01 | 0x08 => 1,
        0x02 | 0x09 | 0x10 => 2,
        0x03 | 0x0a | 0x20 => 4,
        _ => return Err(ERROR_INVALID_VALUE),
    };
    if !matches!(shape.channels, 1 | 2 | 4) {
        return Err(ERROR_INVALID_VALUE);
    }
    Ok(bytes * shape.channels as usize)
}

/// The array with a handle.
pub fn get(driver: &Driver, handle: u64) -> Res<Arc<Array>> {
    driver.arrays.get(handle).ok_or(ERROR_INVALID_HANDLE)
}

fn create(driver: &'static Driver, out: Out<u64>, shape: Solid) -> Res {
    out.check()?;
    stream::refuse_in_capture(driver)?;
    let context = context::current(driver)?;
    let bytes = [shape.width, shape.height.max(1), shape.depth.max(1)]
        .iter()
        .try_fold(element(&shape)?, |bytes, &side| bytes.checked_mul(side))
        .filter(|&bytes| bytes > 0)
        .ok_or(ERROR_INVALID_VALUE)?;
    let address = native::allocate(driver, &context, bytes as u64, 0)?;
    let array = Array {
        address,
        context: context.handle,
        shape,
    };
    out.set(driver.arrays.insert(|_| array).0)
}

fn destroy(driver: &'static Driver, handle: u64) -> Res {
    let array = get(driver, handle)?;
    context::current(driver)?.synchronize()?;
    driver.arrays.remove(handle);
    let mut tables = driver.space.write();
    let owned = tables.natives.get(&array.address);
    if owned.is_some_and(|native| native.context == array.context) {
        native::release(&mut tables, array.address);
    }
    Ok(())
}

api! { TABLE;
    3020 fn cuArrayCreate_v2(array: Out<u64>, shape: In<Flat>) |d| {
        let Flat { width, height, format, channels } = shape.get()?;
        create(d, array, Solid { width, height, depth: 0, format, channels, flags: 0 })
    }
    3020 fn cuArray3DCreate_v2(array: Out<u64>, shape: In<Solid>) |d| { create(d, array, shape.get()?) }
    2000 fn cuArrayDestroy(array: u64) |d| { destroy(d, array) }
    3020 fn cuArray3DGetDescriptor_v2(shape: Out<Solid>, array: u64) |d| { shape.set(get(d, array)?.shape) }
}
