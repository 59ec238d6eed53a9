//! The multi-layer perceptron on one device: its memory, and what a step puts on the streams.

use anyhow::Result;
use cudarc::driver::sys::{CUevent, CUfunction, CUgraphExec, CUstream};

use crate::cuda::{
    Arg, Buffer, Gpu, Pinned, Segment, alloc, capture, cu, event, free, launch, launch_each,
    record, stream, wait,
};
use crate::data::Batch;
use crate::rng::mix;

/// What one step reads besides its batch, in the layout the kernels read from device memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepParameters {
    /// Of the dropout masks.
    pub seed: u64,
    /// Learning rate, corrected for the bias of the first moment.
    pub rate: f32,
    /// Correction of the second moment.
    pub scale: f32,
}

const STEP_WORDS: usize = 4;

/// Steps overlap: while one computes, the next one's batch is filled in and copied.
pub(crate) const SLOTS: usize = 2;

#[derive(Debug)]
struct Slot {
    /// Inputs, labels and step parameters, one after another.
    staging: Pinned,
    inputs: Buffer,
    labels: Buffer,
    parameters: Buffer,
    loss: Pinned,
    copied_in: CUevent,
    computed: CUevent,
    loss_ready: CUevent,
    gradients: Option<CUgraphExec>,
    update: Option<CUgraphExec>,
}

/// A parameter with its gradient and the moments of its optimizer.
#[derive(Debug)]
struct Parameter {
    value: Buffer,
    gradient: Buffer,
    first: Buffer,
    second: Buffer,
    /// Where other devices' gradients arrive; on the first device of several.
    arriving: Option<Buffer>,
}

#[derive(Debug)]
struct Layer {
    inputs: u32,
    outputs: u32,
    weight: Parameter,
    bias: Parameter,
    /// Before the bias: [batch][outputs].
    sums: Buffer,
    /// After activation and dropout, and the gradient with respect to it; none for the last layer.
    activation: Option<(Buffer, Buffer)>,
    /// Gradient with respect to `sums`.
    slope: Buffer,
}

/// Sizes and rates of the model.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub layers: Vec<u32>,
    pub batch: u32,
    pub dropout: f32,
    pub graph: bool,
    pub expandable: bool,
}

/// Losses that the device keeps: one cell a step, a few bytes of a large allocation written at a time.
pub(crate) const HISTORY: usize = 640 * 1024;

const BETA1: f32 = 0.9;
const BETA2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

#[derive(Debug)]
pub(crate) struct Replica {
    pub gpu: Gpu,
    shape: Shape,
    layers: Vec<Layer>,
    slots: Vec<Slot>,
    row_loss: Buffer,
    loss: Buffer,
    history: Buffer,
    segment: Option<Segment>,
    pub compute: CUstream,
    side: CUstream,
    copy_in: CUstream,
    copy_out: CUstream,
    /// For the gradients of the biases, computed beside the rest.
    fork: CUevent,
    join: CUevent,
    gradients_ready: CUevent,
    averaged: CUevent,
}

impl Replica {
    /// The same weights on every device: they follow from the seed.
    pub(crate) fn new(gpu: Gpu, shape: &Shape, seed: u64, collects: bool) -> Result<Self> {
        gpu.select()?;
        let compute = stream()?;
        let bytes = |rows: u32, columns: u32| rows as usize * columns as usize * 4;
        let mut segment = if shape.expandable {
            let total: usize = shape
                .layers
                .windows(2)
                .map(|pair| bytes(pair[0] + 1, pair[1]) + 1024)
                .sum();
            // Far more addresses than are ever backed, as PyTorch does.
            Some(Segment::reserve(&gpu, total * 4 + (64 << 20))?)
        } else {
            None
        };
        let parameter = |segment: &mut Option<Segment>, size: usize| -> Result<Parameter> {
            let parameter = Parameter {
                value: if let Some(segment) = segment {
                    segment.alloc(size)?
                } else {
                    alloc(size)?
                },
                gradient: alloc(size)?,
                first: alloc(size)?,
                second: alloc(size)?,
                arriving: if collects { Some(alloc(size)?) } else { None },
            };
            for moment in [parameter.first, parameter.second] {
                cu!(cuMemsetD8Async(moment.ptr, 0, moment.bytes, compute))?;
            }
            Ok(parameter)
        };
        let mut layers = Vec::new();
        for (index, pair) in shape.layers.windows(2).enumerate() {
            let (inputs, outputs) = (pair[0], pair[1]);
            let size = bytes(shape.batch, outputs);
            let last = index + 2 == shape.layers.len();
            let layer = Layer {
                inputs,
                outputs,
                weight: parameter(&mut segment, bytes(inputs, outputs))?,
                bias: parameter(&mut segment, bytes(1, outputs))?,
                sums: alloc(size)?,
                activation: if last {
                    None
                } else {
                    Some((alloc(size)?, alloc(size)?))
                },
                slope: alloc(size)?,
            };
            let weight = layer.weight.value;
            let bound = (6.0 / (inputs + outputs) as f32).sqrt();
            let layer_seed = mix(seed ^ mix(index as u64));
            let args = [
                Arg::Ptr(weight.ptr),
                Arg::U32(weight.words()),
                Arg::U64(layer_seed),
                Arg::F32(bound),
            ];
            launch_each(gpu.kernels.init, weight.words(), compute, &args)?;
            let bias = layer.bias.value;
            let args = [Arg::Ptr(bias.ptr), Arg::U32(bias.words()), Arg::F32(0.0)];
            launch_each(gpu.kernels.fill, bias.words(), compute, &args)?;
            layers.push(layer);
        }
        let history = alloc(HISTORY * 4)?;
        cu!(cuMemsetD8Async(history.ptr, 0, history.bytes, compute))?;
        let mut slots = Vec::new();
        for _ in 0..SLOTS {
            let input_words = shape.batch as usize * shape.layers[0] as usize;
            slots.push(Slot {
                staging: Pinned::new(input_words + shape.batch as usize + STEP_WORDS)?,
                inputs: alloc(input_words * 4)?,
                labels: alloc(shape.batch as usize * 4)?,
                parameters: alloc(STEP_WORDS * 4)?,
                loss: Pinned::new(1)?,
                copied_in: event()?,
                computed: event()?,
                loss_ready: event()?,
                gradients: None,
                update: None,
            });
        }
        let replica = Self {
            shape: shape.clone(),
            layers,
            slots,
            row_loss: alloc(shape.batch as usize * 4)?,
            loss: alloc(4)?,
            history,
            segment,
            compute,
            side: stream()?,
            copy_in: stream()?,
            copy_out: stream()?,
            fork: event()?,
            join: event()?,
            gradients_ready: event()?,
            averaged: event()?,
            gpu,
        };
        crate::cuda::synchronize(compute)?;
        Ok(replica)
    }

    fn kernel(&self, function: CUfunction, n: u32, args: &[Arg]) -> Result<()> {
        launch_each(function, n, self.compute, args)
    }

    /// `out`[m][n] = op(a) * op(b) with an inner dimension of `k`.
    fn gemm(
        &self,
        a: Buffer,
        b: Buffer,
        out: Buffer,
        [m, n, k]: [u32; 3],
        [trans_a, trans_b]: [bool; 2],
    ) -> Result<()> {
        let args = [
            Arg::Ptr(a.ptr),
            Arg::Ptr(b.ptr),
            Arg::Ptr(out.ptr),
            Arg::U32(m),
            Arg::U32(n),
            Arg::U32(k),
            Arg::U32(trans_a.into()),
            Arg::U32(trans_b.into()),
        ];
        launch(
            self.gpu.kernels.gemm,
            (n.div_ceil(16), m.div_ceil(16)),
            (16, 16),
            self.compute,
            &args,
        )
    }

    /// Hands a batch to the copy stream. Waits until the slot's last batch has been copied.
    pub(crate) fn feed(&mut self, slot: usize, batch: &Batch, step: StepParameters) -> Result<()> {
        self.gpu.select()?;
        let (copy_in, slot) = (self.copy_in, &mut self.slots[slot]);
        cu!(cuEventSynchronize(slot.copied_in))?;
        let (inputs, rest) = slot.staging.as_mut().split_at_mut(batch.inputs.len());
        let (labels, parameters) = rest.split_at_mut(batch.labels.len());
        for (to, from) in inputs.iter_mut().zip(&batch.inputs) {
            *to = from.to_bits();
        }
        labels.copy_from_slice(&batch.labels);
        let words = [
            step.seed as u32,
            (step.seed >> 32) as u32,
            step.rate.to_bits(),
            step.scale.to_bits(),
        ];
        parameters.copy_from_slice(&words);
        // The step that used this slot's device buffers before must have computed.
        wait(copy_in, slot.computed)?;
        let mut offset = 0;
        for target in [slot.inputs, slot.labels, slot.parameters] {
            // In bounds: the staging area is as long as the three together.
            let source = slot.staging.ptr.wrapping_byte_add(offset);
            cu!(cuMemcpyHtoDAsync_v2(
                target.ptr,
                source.cast(),
                target.bytes,
                copy_in
            ))?;
            offset += target.bytes;
        }
        record(slot.copied_in, copy_in)
    }

    /// Enqueues forward and backward pass of the batch in `slot`.
    pub(crate) fn gradients(&mut self, slot: usize) -> Result<()> {
        self.gpu.select()?;
        wait(self.compute, self.slots[slot].copied_in)?;
        if !self.shape.graph {
            self.enqueue_gradients(slot)?;
        } else {
            if self.slots[slot].gradients.is_none() {
                self.slots[slot].gradients =
                    Some(capture(self.compute, || self.enqueue_gradients(slot))?);
            }
            if let Some(graph) = self.slots[slot].gradients {
                cu!(cuGraphLaunch(graph, self.compute))?;
            }
        }
        record(self.gradients_ready, self.compute)
    }

    fn enqueue_gradients(&self, slot: usize) -> Result<()> {
        let kernels = &self.gpu.kernels;
        let batch = self.shape.batch;
        let slot = &self.slots[slot];
        let mut input = slot.inputs;
        for (index, layer) in self.layers.iter().enumerate() {
            let (sums, bias) = (layer.sums, layer.bias.value);
            self.gemm(
                input,
                layer.weight.value,
                sums,
                [batch, layer.outputs, layer.inputs],
                [false, false],
            )?;
            if let Some((activation, _)) = layer.activation {
                let args = [
                    Arg::Ptr(sums.ptr),
                    Arg::Ptr(bias.ptr),
                    Arg::Ptr(activation.ptr),
                    Arg::U32(batch),
                    Arg::U32(layer.outputs),
                ];
                self.kernel(kernels.bias_gelu, sums.words(), &args)?;
                self.dropout(activation, slot, index)?;
                input = activation;
            } else {
                let args = [
                    Arg::Ptr(sums.ptr),
                    Arg::Ptr(bias.ptr),
                    Arg::Ptr(slot.labels.ptr),
                    Arg::Ptr(self.row_loss.ptr),
                    Arg::Ptr(layer.slope.ptr),
                    Arg::U32(batch),
                    Arg::U32(layer.outputs),
                ];
                self.kernel(kernels.softmax_xent, batch, &args)?;
            }
        }
        let args = [
            Arg::Ptr(self.row_loss.ptr),
            Arg::Ptr(self.loss.ptr),
            Arg::U32(batch),
        ];
        launch(kernels.mean, (1, 1), (1, 1), self.compute, &args)?;

        for (index, layer) in self.layers.iter().enumerate().rev() {
            // The bias's gradient on the side stream, beside the weight's.
            record(self.fork, self.compute)?;
            wait(self.side, self.fork)?;
            let gradient = layer.bias.gradient;
            let args = [
                Arg::Ptr(layer.slope.ptr),
                Arg::Ptr(gradient.ptr),
                Arg::U32(batch),
                Arg::U32(layer.outputs),
            ];
            launch_each(kernels.column_sum, layer.outputs, self.side, &args)?;

            let below = index.checked_sub(1).map(|below| &self.layers[below]);
            let input = below
                .and_then(|layer| layer.activation)
                .map_or(slot.inputs, |(activation, _)| activation);
            self.gemm(
                input,
                layer.slope,
                layer.weight.gradient,
                [layer.inputs, layer.outputs, batch],
                [true, false],
            )?;
            if let Some((below, (_, gradient))) =
                below.and_then(|layer| layer.activation.map(|pair| (layer, pair)))
            {
                self.gemm(
                    layer.slope,
                    layer.weight.value,
                    gradient,
                    [batch, layer.inputs, layer.outputs],
                    [false, true],
                )?;
                self.dropout(gradient, slot, index - 1)?;
                let args = [
                    Arg::Ptr(below.sums.ptr),
                    Arg::Ptr(below.bias.value.ptr),
                    Arg::Ptr(gradient.ptr),
                    Arg::Ptr(below.slope.ptr),
                    Arg::U32(batch),
                    Arg::U32(below.outputs),
                ];
                self.kernel(kernels.bias_gelu_backward, below.slope.words(), &args)?;
            }
        }
        record(self.join, self.side)?;
        wait(self.compute, self.join)
    }

    fn dropout(&self, x: Buffer, slot: &Slot, layer: usize) -> Result<()> {
        let args = [
            Arg::Ptr(x.ptr),
            Arg::U32(x.words()),
            Arg::F32(self.shape.dropout),
            Arg::Ptr(slot.parameters.ptr),
            Arg::U32(layer as u32),
        ];
        self.kernel(self.gpu.kernels.dropout, x.words(), &args)
    }

    fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.layers
            .iter()
            .flat_map(|layer| [&layer.weight, &layer.bias])
    }

    /// Averages the gradients of all replicas: collected and added up by the first, in order, and handed back.
    pub(crate) fn average(replicas: &[Self]) -> Result<()> {
        let Some((first, others)) = replicas.split_first() else {
            return Ok(());
        };
        if others.is_empty() {
            return Ok(());
        }
        first.gpu.select()?;
        for (index, other) in others.iter().enumerate() {
            let scale = if index + 1 == others.len() {
                1.0 / replicas.len() as f32
            } else {
                1.0
            };
            wait(first.compute, other.gradients_ready)?;
            for (to, from) in first.parameters().zip(other.parameters()) {
                let Some(arriving) = to.arriving else {
                    continue;
                };
                let (source, context) = (from.gradient, other.gpu.context);
                let (here, bytes) = (first.gpu.context, arriving.bytes);
                cu!(cuMemcpyPeerAsync(
                    arriving.ptr,
                    here,
                    source.ptr,
                    context,
                    bytes,
                    first.compute
                ))?;
                let words = arriving.words();
                let args = [
                    Arg::Ptr(to.gradient.ptr),
                    Arg::Ptr(arriving.ptr),
                    Arg::U32(words),
                    Arg::F32(scale),
                ];
                first.kernel(first.gpu.kernels.add_scaled, words, &args)?;
            }
        }
        record(first.averaged, first.compute)?;
        for other in others {
            other.gpu.select()?;
            wait(other.compute, first.averaged)?;
            for (from, to) in first.parameters().zip(other.parameters()) {
                let (source, target, bytes) =
                    (from.gradient.ptr, to.gradient.ptr, to.gradient.bytes);
                cu!(cuMemcpyPeerAsync(
                    target,
                    other.gpu.context,
                    source,
                    first.gpu.context,
                    bytes,
                    other.compute
                ))?;
            }
            // The first device's next backward pass overwrites what is being copied here.
            record(other.averaged, other.compute)?;
            first.gpu.select()?;
            wait(first.compute, other.averaged)?;
        }
        Ok(())
    }

    /// Enqueues the optimizer's update and the copies of the loss.
    pub(crate) fn update(&mut self, slot: usize, step: u64) -> Result<()> {
        self.gpu.select()?;
        if !self.shape.graph {
            self.enqueue_update(slot)?;
        } else {
            if self.slots[slot].update.is_none() {
                self.slots[slot].update =
                    Some(capture(self.compute, || self.enqueue_update(slot))?);
            }
            if let Some(graph) = self.slots[slot].update {
                cu!(cuGraphLaunch(graph, self.compute))?;
            }
        }
        let cell = self.history.ptr + (step % HISTORY as u64) * 4;
        cu!(cuMemcpyDtoDAsync_v2(cell, self.loss.ptr, 4, self.compute))?;
        let slot = &self.slots[slot];
        record(slot.computed, self.compute)?;
        wait(self.copy_out, slot.computed)?;
        cu!(cuMemcpyDtoHAsync_v2(
            slot.loss.ptr.cast(),
            cell,
            4,
            self.copy_out
        ))?;
        record(slot.loss_ready, self.copy_out)
    }

    fn enqueue_update(&self, slot: usize) -> Result<()> {
        // After the 8 bytes of the seed.
        let hyper = self.slots[slot].parameters.ptr + 8;
        for parameter in self.parameters() {
            let args = [
                Arg::Ptr(parameter.value.ptr),
                Arg::Ptr(parameter.gradient.ptr),
                Arg::Ptr(parameter.first.ptr),
                Arg::Ptr(parameter.second.ptr),
                Arg::U32(parameter.value.words()),
                Arg::Ptr(hyper),
                Arg::F32(BETA1),
                Arg::F32(BETA2),
                Arg::F32(EPSILON),
            ];
            self.kernel(self.gpu.kernels.adam, parameter.value.words(), &args)?;
        }
        Ok(())
    }

    /// Waits for the loss of the step that used `slot`.
    pub(crate) fn loss(&mut self, slot: usize) -> Result<f32> {
        self.gpu.select()?;
        let slot = &mut self.slots[slot];
        cu!(cuEventSynchronize(slot.loss_ready))?;
        Ok(f32::from_bits(slot.loss.as_mut()[0]))
    }

    /// The losses the device kept, as many as it keeps.
    pub(crate) fn history(&self, steps: u64) -> Result<Vec<u32>> {
        self.gpu.select()?;
        crate::cuda::synchronize(self.compute)?;
        let mut losses = vec![0u32; HISTORY.min(usize::try_from(steps)?)];
        if !losses.is_empty() {
            cu!(cuMemcpyDtoH_v2(
                losses.as_mut_ptr().cast(),
                self.history.ptr,
                losses.len() * 4
            ))?;
        }
        Ok(losses)
    }

    /// Gives everything back to the driver.
    pub(crate) fn close(self) -> Result<()> {
        self.gpu.select()?;
        cu!(cuCtxSynchronize())?;
        let mut buffers = vec![self.row_loss, self.loss, self.history];
        for layer in &self.layers {
            for parameter in [&layer.weight, &layer.bias] {
                buffers.extend([parameter.gradient, parameter.first, parameter.second]);
                buffers.extend(parameter.arriving);
                if self.segment.is_none() {
                    buffers.push(parameter.value);
                }
            }
            buffers.extend([layer.sums, layer.slope]);
            buffers.extend(
                layer
                    .activation
                    .into_iter()
                    .flat_map(|(value, gradient)| [value, gradient]),
            );
        }
        let mut events = vec![self.fork, self.join, self.gradients_ready, self.averaged];
        for slot in self.slots {
            buffers.extend([slot.inputs, slot.labels, slot.parameters]);
            events.extend([slot.copied_in, slot.computed, slot.loss_ready]);
            slot.staging.free()?;
            slot.loss.free()?;
            for graph in [slot.gradients, slot.update].into_iter().flatten() {
                cu!(cuGraphExecDestroy(graph))?;
            }
        }
        buffers.into_iter().try_for_each(free)?;
        if let Some(segment) = self.segment {
            segment.close()?;
        }
        for event in events {
            cu!(cuEventDestroy_v2(event))?;
        }
        for stream in [self.compute, self.side, self.copy_in, self.copy_out] {
            cu!(cuStreamDestroy_v2(stream))?;
        }
        self.gpu.close()
    }
}
