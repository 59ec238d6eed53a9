//! A field that lives in arrays, the driver's own memory, which copies reach, and kernels through textures and surfaces. What was
//! written to it in earlier steps is part of the losses.

use anyhow::Result;
use cudarc::driver::sys::{
    CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY3D_DESCRIPTOR, CUDA_MEMCPY2D, CUDA_MEMCPY3D,
    CUDA_RESOURCE_DESC, CUDA_RESOURCE_DESC_st__bindgen_ty_1,
    CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_1, CUDA_TEXTURE_DESC, CUaddress_mode, CUarray,
    CUarray_format, CUfilter_mode, CUmemorytype, CUresourcetype, CUstream, CUsurfObject,
    CUtexObject,
};

use crate::cuda::{Arg, Buffer, Gpu, alloc, checksum, cu, free, launch_each};
use crate::rng::mix;

const WIDTH: usize = 96;
const HEIGHT: usize = 64;
const LAYERS: usize = 4;
/// Bytes of a row, and of a field.
const ROW: usize = WIDTH * 4;
const FIELD: usize = ROW * HEIGHT;
/// `CUDA_ARRAY3D_LAYERED`, `CUDA_ARRAY3D_SURFACE_LDST`.
const LAYERED: u32 = 1;
const SURFACE: u32 = 2;

/// See the module.
#[derive(Debug)]
pub(crate) struct Arrays {
    fields: [CUarray; 2],
    layers: CUarray,
    /// Of the second field.
    texture: CUtexObject,
    /// Of the first.
    surface: CUsurfObject,
    /// Written anew at each step.
    linear: [Buffer; 2],
    result: Buffer,
    /// Never looked at: memory that the driver has to keep.
    idle: Option<CUarray>,
}

fn flat(rows: usize) -> Result<CUarray> {
    let shape = CUDA_ARRAY_DESCRIPTOR {
        Width: WIDTH,
        Height: rows,
        Format: CUarray_format::CU_AD_FORMAT_FLOAT,
        NumChannels: 1,
    };
    let mut array = std::ptr::null_mut();
    cu!(cuArrayCreate_v2(&mut array, &shape))?;
    Ok(array)
}

fn solid(depth: usize, flags: u32) -> Result<CUarray> {
    let shape = CUDA_ARRAY3D_DESCRIPTOR {
        Width: WIDTH,
        Height: HEIGHT,
        Depth: depth,
        Format: CUarray_format::CU_AD_FORMAT_FLOAT,
        NumChannels: 1,
        Flags: flags,
    };
    let mut array = std::ptr::null_mut();
    cu!(cuArray3DCreate_v2(&mut array, &shape))?;
    Ok(array)
}

const fn resource(array: CUarray) -> CUDA_RESOURCE_DESC {
    CUDA_RESOURCE_DESC {
        resType: CUresourcetype::CU_RESOURCE_TYPE_ARRAY,
        res: CUDA_RESOURCE_DESC_st__bindgen_ty_1 {
            array: CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_1 { hArray: array },
        },
        flags: 0,
    }
}

fn texture(array: CUarray) -> Result<CUtexObject> {
    let how = CUDA_TEXTURE_DESC {
        addressMode: [CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP; 3],
        filterMode: CUfilter_mode::CU_TR_FILTER_MODE_POINT,
        flags: 0,
        maxAnisotropy: 0,
        mipmapFilterMode: CUfilter_mode::CU_TR_FILTER_MODE_POINT,
        mipmapLevelBias: 0.0,
        minMipmapLevelClamp: 0.0,
        maxMipmapLevelClamp: 0.0,
        borderColor: [0.0; 4],
        reserved: [0; 12],
    };
    let mut object = 0;
    cu!(cuTexObjectCreate(
        &mut object,
        &resource(array),
        &how,
        std::ptr::null()
    ))?;
    Ok(object)
}

fn surface(array: CUarray) -> Result<CUsurfObject> {
    let mut object = 0;
    cu!(cuSurfObjectCreate(&mut object, &resource(array)))?;
    Ok(object)
}

/// One end of a copy: a layer of an array, or linear memory.
#[derive(Debug, Clone, Copy)]
enum End {
    Array(CUarray, usize),
    Linear(Buffer),
}

impl End {
    const fn kind(self) -> CUmemorytype {
        match self {
            Self::Array(..) => CUmemorytype::CU_MEMORYTYPE_ARRAY,
            Self::Linear(_) => CUmemorytype::CU_MEMORYTYPE_DEVICE,
        }
    }

    const fn array(self) -> (CUarray, usize) {
        match self {
            Self::Array(array, layer) => (array, layer),
            Self::Linear(_) => (std::ptr::null_mut(), 0),
        }
    }

    const fn address(self) -> u64 {
        match self {
            Self::Array(..) => 0,
            Self::Linear(buffer) => buffer.ptr,
        }
    }
}

/// Copies a field.
fn copy(from: End, to: End, stream: CUstream) -> Result<()> {
    let copy = CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: from.array().1,
        srcLOD: 0,
        srcMemoryType: from.kind(),
        srcHost: std::ptr::null(),
        srcDevice: from.address(),
        srcArray: from.array().0,
        reserved0: std::ptr::null_mut(),
        srcPitch: ROW,
        srcHeight: HEIGHT,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: to.array().1,
        dstLOD: 0,
        dstMemoryType: to.kind(),
        dstHost: std::ptr::null_mut(),
        dstDevice: to.address(),
        dstArray: to.array().0,
        reserved1: std::ptr::null_mut(),
        dstPitch: ROW,
        dstHeight: HEIGHT,
        WidthInBytes: ROW,
        Height: HEIGHT,
        Depth: 1,
    };
    Ok(cu!(cuMemcpy3DAsync_v2(&copy, stream))?)
}

/// The same by the call for two dimensions.
fn copy_flat(from: End, to: End, stream: CUstream) -> Result<()> {
    let copy = CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: from.kind(),
        srcHost: std::ptr::null(),
        srcDevice: from.address(),
        srcArray: from.array().0,
        srcPitch: ROW,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: to.kind(),
        dstHost: std::ptr::null_mut(),
        dstDevice: to.address(),
        dstArray: to.array().0,
        dstPitch: ROW,
        WidthInBytes: ROW,
        Height: HEIGHT,
    };
    Ok(cu!(cuMemcpy2DAsync_v2(&copy, stream))?)
}

impl Arrays {
    /// And `mib` MiB in one that is never looked at again.
    pub(crate) fn new(gpu: &Gpu, mib: usize, stream: CUstream) -> Result<Self> {
        gpu.select()?;
        let fields = [solid(0, SURFACE)?, flat(HEIGHT)?];
        let arrays = Self {
            fields,
            layers: solid(LAYERS, LAYERED)?,
            texture: texture(fields[1])?,
            surface: surface(fields[0])?,
            linear: [alloc(FIELD)?, alloc(FIELD)?],
            result: alloc(8)?,
            idle: if mib > 0 {
                Some(flat((mib << 20) / ROW)?)
            } else {
                None
            },
        };
        for layer in 0..=LAYERS {
            let linear = arrays.linear[0];
            let args = [
                Arg::Ptr(linear.ptr),
                Arg::U32(linear.words()),
                Arg::U64(mix(layer as u64)),
                Arg::F32(1.0),
            ];
            launch_each(gpu.kernels.init, linear.words(), stream, &args)?;
            let to = match layer {
                LAYERS => End::Array(arrays.fields[0], 0),
                layer => End::Array(arrays.layers, layer),
            };
            copy(End::Linear(linear), to, stream)?;
        }
        Ok(arrays)
    }

    /// The field and a layer give the layer as it is from then on, and that, smoothed, the next field; the layer's checksum.
    pub(crate) fn step(&self, gpu: &Gpu, step: u64, stream: CUstream) -> Result<u64> {
        gpu.select()?;
        let layer = (mix(step) % LAYERS as u64) as usize;
        let [field, other] = self.linear;
        copy(End::Array(self.fields[0], 0), End::Linear(field), stream)?;
        copy(End::Array(self.layers, layer), End::Linear(other), stream)?;
        let args = [
            Arg::Ptr(field.ptr),
            Arg::Ptr(other.ptr),
            Arg::U32(field.words()),
            Arg::F32(0.75),
        ];
        launch_each(gpu.kernels.add_scaled, field.words(), stream, &args)?;
        copy_flat(End::Linear(field), End::Array(self.fields[1], 0), stream)?;
        copy(End::Linear(field), End::Array(self.layers, layer), stream)?;
        let args = [
            Arg::U64(self.texture),
            Arg::U64(self.surface),
            Arg::U32(WIDTH as u32),
            Arg::U32(HEIGHT as u32),
        ];
        launch_each(gpu.kernels.smooth, field.words(), stream, &args)?;
        checksum(gpu, field, self.result, stream)
    }

    pub(crate) fn finish(self, gpu: &Gpu) -> Result<()> {
        gpu.select()?;
        cu!(cuTexObjectDestroy(self.texture))?;
        cu!(cuSurfObjectDestroy(self.surface))?;
        let arrays = self.fields.into_iter().chain([self.layers]);
        for array in arrays.chain(self.idle) {
            cu!(cuArrayDestroy(array))?;
        }
        for buffer in self.linear {
            free(buffer)?;
        }
        free(self.result)
    }
}
