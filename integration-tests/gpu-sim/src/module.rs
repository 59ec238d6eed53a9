//! Modules, libraries, functions and kernels.
//!
//! Code arrives as PTX text. Its entries are bound by name to functions of [`crate::kernels`]; a name that is not there
//! is refused when the function is asked for, with a message that says so. Globals are native memory of the module.

use crate::api::{In, Out, api};
use crate::context::{self, Context};
use crate::driver::Driver;
use crate::error::{
    ERROR_FILE_NOT_FOUND, ERROR_INVALID_HANDLE, ERROR_INVALID_IMAGE, ERROR_INVALID_PTX,
    ERROR_INVALID_VALUE, ERROR_NOT_FOUND, ERROR_NOT_SUPPORTED, Res,
};
use crate::kernels::{self, Kernel};
use crate::memory::native;
use crate::memory::space::Who;
use crate::ptx::{self, Image};
use crate::sync::lock;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex};

/// Code loaded into a context.
pub struct Module {
    pub handle: u64,
    context: u64,
    image: Arc<Image>,
    /// Addresses and sizes of the globals.
    globals: HashMap<String, (u64, usize)>,
    functions: Mutex<HashMap<String, u64>>,
}

/// Code that is loaded into each context that uses it.
pub struct Library {
    image: Arc<Image>,
    kernels: Mutex<HashMap<String, u64>>,
    modules: Mutex<HashMap<u64, u64>>,
}

/// A `CUfunction` (of a module) or a `CUkernel` (of a library).
pub struct Function {
    pub entry: ptx::Entry,
    pub kernel: Option<Kernel>,
    name: CString,
    module: u64,
    library: u64,
    attributes: Mutex<HashMap<i32, i32>>,
}

const MAX_THREADS: i32 = 0;
const MAX_DYNAMIC_SHARED: i32 = 8;

impl Function {
    fn new(entry: &ptx::Entry, module: u64, library: u64) -> Self {
        Self {
            kernel: kernels::find(&entry.name),
            name: CString::new(entry.name.clone()).unwrap_or_default(),
            entry: entry.clone(),
            module,
            library,
            attributes: Mutex::new(HashMap::from([
                (MAX_THREADS, 1024),
                (1, 0),
                (2, 0),
                (3, 0),
                (4, 32),
                (5, 80),
                (6, 90),
                (7, 0),
                (MAX_DYNAMIC_SHARED, 49152),
                (9, -1),
                (10, 0),
                (11, 0),
                (12, 0),
                (13, 0),
                (14, 0),
                (15, 0),
            ])),
        }
    }

    fn attribute(&self, which: i32) -> Res<i32> {
        lock(&self.attributes)
            .get(&which)
            .copied()
            .ok_or(ERROR_INVALID_VALUE)
    }

    fn set_attribute(&self, which: i32, value: i32) -> Res {
        if !(8..=15).contains(&which)
            || which == MAX_DYNAMIC_SHARED && !(0..=232_448).contains(&value)
        {
            return Err(ERROR_INVALID_VALUE);
        }
        lock(&self.attributes).insert(which, value);
        Ok(())
    }

    /// The most dynamic shared memory a launch may ask for.
    pub fn max_shared(&self) -> u32 {
        self.attribute(MAX_DYNAMIC_SHARED)
            .ok()
            .and_then(|bytes| u32::try_from(bytes).ok())
            .unwrap_or(0)
    }

    fn param(&self, index: usize, offset: Out<usize>, size: Out<usize>) -> Res {
        let param = self.entry.params.get(index).ok_or(ERROR_INVALID_VALUE)?;
        offset.set(param.offset)?;
        size.set_optional(param.size);
        Ok(())
    }
}

/// The function or kernel with a handle.
pub fn function(driver: &Driver, handle: u64) -> Res<Arc<Function>> {
    driver.functions.get(handle).ok_or(ERROR_INVALID_HANDLE)
}

fn module(driver: &Driver, handle: u64) -> Res<Arc<Module>> {
    driver.modules.get(handle).ok_or(ERROR_INVALID_HANDLE)
}

fn library(driver: &Driver, handle: u64) -> Res<Arc<Library>> {
    driver.libraries.get(handle).ok_or(ERROR_INVALID_HANDLE)
}

fn parse(image: In<u8>) -> Res<Arc<Image>> {
    let start = [image.at(0)?, image.at(1)?, image.at(2)?, image.at(3)?];
    if start == *b"\x7fELF"
        || start == [0x50, 0xed, 0x55, 0xba]
        || start == [0xb1, 0x43, 0x62, 0x46]
    {
        eprintln!(
            "phos simulated GPU: only PTX text can be loaded, not machine code or fat binaries"
        );
        return Err(ERROR_INVALID_IMAGE);
    }
    let text = image.text()?;
    if !text.contains(".version") {
        return Err(ERROR_INVALID_IMAGE);
    }
    ptx::parse(&text).map(Arc::new).ok_or(ERROR_INVALID_PTX)
}

fn parse_file(path: In<u8>) -> Res<Arc<Image>> {
    let text = std::fs::read_to_string(path.text()?).map_err(|_| ERROR_FILE_NOT_FOUND)?;
    ptx::parse(&text).map(Arc::new).ok_or(ERROR_INVALID_PTX)
}

fn load(driver: &'static Driver, owner: &Context, image: Arc<Image>) -> Res<u64> {
    let mut globals = HashMap::new();
    for global in &image.globals {
        let address = native::allocate(driver, owner, global.size.max(1) as u64, 0)?;
        let tables = driver.space.read();
        let at = tables.resolve(address, global.size as u64, true, Who::Copy)?;
        let start = &global.start[..global.start.len().min(global.size)];
        // SAFETY: resolved for the whole variable while the table is held.
        unsafe {
            at.write_bytes(0, global.size);
            std::ptr::copy_nonoverlapping(start.as_ptr(), at, start.len());
        }
        globals.insert(global.name.clone(), (address, global.size));
    }
    let make = |handle| Module {
        handle,
        context: owner.handle,
        image,
        globals,
        functions: Mutex::default(),
    };
    Ok(driver.modules.insert(make).0)
}

fn unload(driver: &Driver, handle: u64) -> Res {
    let module = driver.modules.remove(handle).ok_or(ERROR_INVALID_HANDLE)?;
    for function in lock(&module.functions).values() {
        driver.functions.remove(*function);
    }
    let mut tables = driver.space.write();
    for (address, _) in module.globals.values() {
        native::release(&mut tables, *address);
    }
    Ok(())
}

/// Unloads what a destroyed context had loaded. Its memory is freed with the context's.
pub fn unload_context(driver: &Driver, context: u64) {
    for module in driver.modules.all() {
        if module.context == context {
            let _ = unload(driver, module.handle);
        }
    }
    for library in driver.libraries.all() {
        lock(&library.modules).remove(&context);
    }
}

fn find<'a>(image: &'a Image, name: &str) -> Res<&'a ptx::Entry> {
    let entry = image
        .entries
        .iter()
        .find(|entry| entry.name == name)
        .ok_or(ERROR_NOT_FOUND)?;
    if kernels::find(name).is_none() {
        eprintln!(
            "phos simulated GPU: no Rust function stands for the kernel {name:?} (see gpu-sim/src/kernels)"
        );
        return Err(ERROR_NOT_FOUND);
    }
    Ok(entry)
}

fn get_function(driver: &Driver, handle: u64, name: &str) -> Res<u64> {
    let module = module(driver, handle)?;
    let entry = find(&module.image, name)?;
    let mut functions = lock(&module.functions);
    if let Some(known) = functions.get(name) {
        return Ok(*known);
    }
    let (function, _) = driver.functions.insert(|_| Function::new(entry, handle, 0));
    functions.insert(name.to_owned(), function);
    Ok(function)
}

fn get_kernel(driver: &Driver, handle: u64, name: &str) -> Res<u64> {
    let library = library(driver, handle)?;
    let entry = find(&library.image, name)?;
    let mut kernels = lock(&library.kernels);
    if let Some(known) = kernels.get(name) {
        return Ok(*known);
    }
    let (kernel, _) = driver.functions.insert(|_| Function::new(entry, 0, handle));
    kernels.insert(name.to_owned(), kernel);
    Ok(kernel)
}

fn library_module(driver: &'static Driver, handle: u64) -> Res<u64> {
    let library = library(driver, handle)?;
    let context = context::current(driver)?;
    let mut modules = lock(&library.modules);
    if let Some(known) = modules.get(&context.handle) {
        return Ok(*known);
    }
    let module = load(driver, &context, Arc::clone(&library.image))?;
    modules.insert(context.handle, module);
    Ok(module)
}

fn unload_library(driver: &Driver, handle: u64) -> Res {
    let library = driver
        .libraries
        .remove(handle)
        .ok_or(ERROR_INVALID_HANDLE)?;
    for kernel in lock(&library.kernels).values() {
        driver.functions.remove(*kernel);
    }
    for module in lock(&library.modules).values() {
        let _ = unload(driver, *module);
    }
    Ok(())
}

fn kernel(driver: &Driver, handle: u64) -> Res<Arc<Function>> {
    function(driver, handle).and_then(|kernel| {
        if kernel.library == 0 {
            Err(ERROR_INVALID_HANDLE)
        } else {
            Ok(kernel)
        }
    })
}

fn kernel_function(driver: &'static Driver, handle: u64) -> Res<u64> {
    let kernel = kernel(driver, handle)?;
    get_function(
        driver,
        library_module(driver, kernel.library)?,
        &kernel.entry.name,
    )
}

fn get_global(
    driver: &Driver,
    handle: u64,
    name: &str,
    address: Out<u64>,
    size: Out<usize>,
) -> Res {
    let module = module(driver, handle)?;
    let (at, bytes) = module.globals.get(name).copied().ok_or(ERROR_NOT_FOUND)?;
    address.set_optional(at);
    size.set_optional(bytes);
    Ok(())
}

fn load_library(driver: &Driver, out: Out<u64>, image: Arc<Image>) -> Res {
    let make = |_| Library {
        image,
        kernels: Mutex::default(),
        modules: Mutex::default(),
    };
    out.set(driver.libraries.insert(make).0)
}

/// Blocks on one multiprocessor: by threads and by shared memory.
fn occupancy(driver: &Driver, handle: u64, threads: i32, shared: usize) -> Res<i32> {
    let function = function(driver, handle)?;
    if !(1..=1024).contains(&threads) {
        return Err(ERROR_INVALID_VALUE);
    }
    if shared > function.max_shared() as usize {
        return Ok(0);
    }
    let by_memory = 233_472 / (shared + 1024);
    Ok(
        (2048 / threads.cast_unsigned().next_multiple_of(32) as usize)
            .min(32)
            .min(by_memory) as i32,
    )
}

fn block_size(
    driver: &Driver,
    grid: Out<i32>,
    block: Out<i32>,
    handle: u64,
    shared: usize,
    limit: i32,
) -> Res {
    let threads = if limit <= 0 { 1024 } else { limit.min(1024) };
    block.set(threads)?;
    grid.set(132 * occupancy(driver, handle, threads, shared)?.max(1))
}

api! { TABLE;
    2000 fn cuModuleLoad(module: Out<u64>, path: In<u8>) |d| {
        module.check()?;
        let context = context::current(d)?;
        module.set(load(d, &context, parse_file(path)?)?)
    }
    2000 fn cuModuleLoadData(module: Out<u64>, image: In<u8>) |d| {
        module.check()?;
        let context = context::current(d)?;
        module.set(load(d, &context, parse(image)?)?)
    }
    2010 fn cuModuleLoadDataEx(module: Out<u64>, image: In<u8>, _count: u32, _options: u64, _values: u64) |d| {
        module.check()?;
        let context = context::current(d)?;
        module.set(load(d, &context, parse(image)?)?)
    }
    2000 fn cuModuleLoadFatBinary(module: Out<u64>, image: In<u8>) |d| {
        module.check()?;
        let context = context::current(d)?;
        module.set(load(d, &context, parse(image)?)?)
    }
    2000 fn cuModuleUnload(handle: u64) |d| {
        let module = module(d, handle)?;
        if let Some(owner) = d.contexts.get(module.context) { owner.synchronize()?; }
        unload(d, handle)
    }
    11070 fn cuModuleGetLoadingMode(mode: Out<i32>) |_d| { mode.set(2) }
    2000 fn cuModuleGetFunction(function: Out<u64>, module: u64, name: In<u8>) |d| {
        function.check()?;
        context::current(d)?;
        function.set(get_function(d, module, &name.text()?)?)
    }
    12040 fn cuModuleGetFunctionCount(count: Out<u32>, handle: u64) |d| {
        count.set(module(d, handle)?.image.entries.len() as u32)
    }
    12040 fn cuModuleEnumerateFunctions(list: Out<u64>, count: u32, handle: u64) |d| {
        let image = Arc::clone(&module(d, handle)?.image);
        let known: Res<Vec<u64>> =
            image.entries.iter().take(count as usize).map(|entry| get_function(d, handle, &entry.name)).collect();
        list.set_all(&known?)
    }
    3020 fn cuModuleGetGlobal_v2(address: Out<u64>, size: Out<usize>, module: u64, name: In<u8>) |d| {
        context::current(d)?;
        get_global(d, module, &name.text()?, address, size)
    }
    12000 fn cuLibraryLoadData(
        library: Out<u64>,
        code: In<u8>,
        _jit: u64,
        _jit_values: u64,
        _jit_count: u32,
        _options: u64,
        _values: u64,
        _count: u32,
    ) |d| {
        library.check()?;
        load_library(d, library, parse(code)?)
    }
    12000 fn cuLibraryLoadFromFile(
        library: Out<u64>,
        path: In<u8>,
        _jit: u64,
        _jit_values: u64,
        _jit_count: u32,
        _options: u64,
        _values: u64,
        _count: u32,
    ) |d| {
        library.check()?;
        load_library(d, library, parse_file(path)?)
    }
    12000 fn cuLibraryUnload(library: u64) |d| { unload_library(d, library) }
    12000 fn cuLibraryGetKernel(kernel: Out<u64>, library: u64, name: In<u8>) |d| {
        kernel.check()?;
        kernel.set(get_kernel(d, library, &name.text()?)?)
    }
    12040 fn cuLibraryGetKernelCount(count: Out<u32>, handle: u64) |d| {
        count.set(library(d, handle)?.image.entries.len() as u32)
    }
    12040 fn cuLibraryEnumerateKernels(list: Out<u64>, count: u32, handle: u64) |d| {
        let image = Arc::clone(&library(d, handle)?.image);
        let known: Res<Vec<u64>> =
            image.entries.iter().take(count as usize).map(|entry| get_kernel(d, handle, &entry.name)).collect();
        list.set_all(&known?)
    }
    12000 fn cuLibraryGetModule(module: Out<u64>, library: u64) |d| { module.set(library_module(d, library)?) }
    12000 fn cuLibraryGetGlobal(address: Out<u64>, size: Out<usize>, library: u64, name: In<u8>) |d| {
        get_global(d, library_module(d, library)?, &name.text()?, address, size)
    }
    12000 fn cuLibraryGetManaged(_address: Out<u64>, _size: Out<usize>, handle: u64, _name: In<u8>) |d| {
        library(d, handle)?;
        Err(ERROR_NOT_FOUND)
    }
    12000 fn cuKernelGetFunction(function: Out<u64>, kernel: u64) |d| { function.set(kernel_function(d, kernel)?) }
    12050 fn cuKernelGetLibrary(library: Out<u64>, handle: u64) |d| { library.set(kernel(d, handle)?.library) }
    12000 fn cuKernelGetAttribute(value: Out<i32>, which: i32, handle: u64, _device: i32) |d| {
        value.set(kernel(d, handle)?.attribute(which)?)
    }
    12000 fn cuKernelSetAttribute(which: i32, value: i32, handle: u64, _device: i32) |d| {
        kernel(d, handle)?.set_attribute(which, value)
    }
    12000 fn cuKernelSetCacheConfig(handle: u64, _config: i32, _device: i32) |d| { kernel(d, handle).map(drop) }
    12030 fn cuKernelGetName(name: Out<*const u8>, handle: u64) |d| {
        name.set(kernel(d, handle)?.name.as_ptr().cast())
    }
    12040 fn cuKernelGetParamInfo(handle: u64, index: usize, offset: Out<usize>, size: Out<usize>) |d| {
        kernel(d, handle)?.param(index, offset, size)
    }
    2020 fn cuFuncGetAttribute(value: Out<i32>, which: i32, handle: u64) |d| {
        value.set(function(d, handle)?.attribute(which)?)
    }
    9000 fn cuFuncSetAttribute(handle: u64, which: i32, value: i32) |d| {
        function(d, handle)?.set_attribute(which, value)
    }
    3000 fn cuFuncSetCacheConfig(handle: u64, _config: i32) |d| { function(d, handle).map(drop) }
    4020 fn cuFuncSetSharedMemConfig(handle: u64, _config: i32) |d| { function(d, handle).map(drop) }
    11000 fn cuFuncGetModule(module: Out<u64>, handle: u64) |d| {
        let function = function(d, handle)?;
        module.set(if function.module == 0 { library_module(d, function.library)? } else { function.module })
    }
    12030 fn cuFuncGetName(name: Out<*const u8>, handle: u64) |d| {
        name.set(function(d, handle)?.name.as_ptr().cast())
    }
    12040 fn cuFuncGetParamInfo(handle: u64, index: usize, offset: Out<usize>, size: Out<usize>) |d| {
        function(d, handle)?.param(index, offset, size)
    }
    12040 fn cuFuncIsLoaded(state: Out<i32>, handle: u64) |d| {
        function(d, handle)?;
        state.set(1)
    }
    12040 fn cuFuncLoad(handle: u64) |d| { function(d, handle).map(drop) }
    6050 fn cuOccupancyMaxActiveBlocksPerMultiprocessor(count: Out<i32>, handle: u64, threads: i32, shared: usize) |d| {
        count.set(occupancy(d, handle, threads, shared)?)
    }
    7000 fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        count: Out<i32>,
        handle: u64,
        threads: i32,
        shared: usize,
        _flags: u32,
    ) |d| {
        count.set(occupancy(d, handle, threads, shared)?)
    }
    6050 fn cuOccupancyMaxPotentialBlockSize(
        grid: Out<i32>,
        block: Out<i32>,
        handle: u64,
        _shared_for: u64,
        shared: usize,
        limit: i32,
    ) |d| {
        block_size(d, grid, block, handle, shared, limit)
    }
    7000 fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<i32>,
        block: Out<i32>,
        handle: u64,
        _shared_for: u64,
        shared: usize,
        limit: i32,
        _flags: u32,
    ) |d| {
        block_size(d, grid, block, handle, shared, limit)
    }
    10020 fn cuOccupancyAvailableDynamicSMemPerBlock(bytes: Out<usize>, handle: u64, blocks: i32, _threads: i32) |d| {
        let function = function(d, handle)?;
        let blocks = usize::try_from(blocks).ok().filter(|count| *count > 0).ok_or(ERROR_INVALID_VALUE)?;
        bytes.set((233_472 / blocks).saturating_sub(1024).min(function.max_shared() as usize))
    }
    6050 fn cuLinkCreate_v2(_count: u32, _options: u64, _values: u64, _state: Out<u64>) |_d| { Err(ERROR_NOT_SUPPORTED) }
}
