//! Textures and surfaces: how kernels reach arrays. A texture is read through, a surface written, and the array must have been made
//! for that. Of a texture's ways to look things up there is one: the texel that a coordinate lies in, the nearest one outside.

use super::array::{self, Array};
use crate::api::{In, Out, api};
use crate::driver::{self, Driver};
use crate::error::{ERROR_INVALID_HANDLE, ERROR_INVALID_VALUE, ERROR_NOT_SUPPORTED, Res};
use crate::kernels::{Launch, View};
use std::sync::Arc;

/// `CUDA_RESOURCE_DESC`, as far as it is about an array.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Resource {
    kind: i32,
    array: u64,
    rest: [u64; 15],
    flags: u32,
}

/// `CUDA_TEXTURE_DESC`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct How {
    outside: [i32; 3],
    filter: i32,
    flags: u32,
    rest: [u32; 21],
}

const _: () = assert!(size_of::<Resource>() == 144 && size_of::<How>() == 104);

/// `CU_RESOURCE_TYPE_ARRAY`, `CU_TR_ADDRESS_MODE_CLAMP`, `CU_TR_FILTER_MODE_POINT`.
const ARRAY: i32 = 0;
const CLAMP: i32 = 1;
const POINT: i32 = 0;

/// A texture or surface.
pub struct Object {
    array: Arc<Array>,
    writes: bool,
}

fn of_array(driver: &Driver, resource: In<Resource>) -> Res<Arc<Array>> {
    let resource = resource.get()?;
    if resource.kind != ARRAY {
        return Err(ERROR_NOT_SUPPORTED);
    }
    array::get(driver, resource.array)
}

impl Object {
    /// The texels of a texture (`writes` false) or surface of single floats, row by row, and how many are in a row.
    ///
    /// # Errors
    /// There is no such object, or it is of another shape.
    pub fn texels<'a>(
        launch: &Launch<'a>,
        handle: u64,
        writes: bool,
    ) -> Res<(View<'a, f32>, usize)> {
        let driver = driver::get()?;
        let object = driver.textures.get(handle).ok_or(ERROR_INVALID_HANDLE)?;
        if object.writes != writes || !object.array.holds_floats() {
            return Err(ERROR_INVALID_VALUE);
        }
        let width = object.array.row() / size_of::<f32>();
        let count = width * object.array.rows();
        Ok((
            launch.view(object.array.address, count as u64, writes)?,
            width,
        ))
    }
}

api! { TABLE;
    5000 fn cuTexObjectCreate(object: Out<u64>, resource: In<Resource>, how: In<How>, view: In<u8>) |d| {
        object.check()?;
        let how = how.get()?;
        if how.outside[..2] != [CLAMP; 2] || how.filter != POINT || how.flags != 0 || !view.is_null() {
            return Err(ERROR_NOT_SUPPORTED);
        }
        let array = of_array(d, resource)?;
        object.set(d.textures.insert(|_| Object { array, writes: false }).0)
    }
    5000 fn cuTexObjectDestroy(object: u64) |d| { d.textures.remove(object).map(drop).ok_or(ERROR_INVALID_HANDLE) }
    5000 fn cuSurfObjectCreate(object: Out<u64>, resource: In<Resource>) |d| {
        object.check()?;
        let array = of_array(d, resource)?;
        if !array.is_for_surfaces() {
            return Err(ERROR_INVALID_VALUE);
        }
        object.set(d.textures.insert(|_| Object { array, writes: true }).0)
    }
    5000 fn cuSurfObjectDestroy(object: u64) |d| { d.textures.remove(object).map(drop).ok_or(ERROR_INVALID_HANDLE) }
}
