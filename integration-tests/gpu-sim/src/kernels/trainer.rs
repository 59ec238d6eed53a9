//! The kernels of the test trainer (`integration-tests/trainer/kernels/trainer.cu`), entry by entry.
//!
//! The same arithmetic in the same order as there; `exp`, `log` and `tanh` are the host's, so the last bits of a run
//! differ from a GPU's and agree with those of any other run here.

use super::{Kernel, Launch, View};
use crate::error::{ERROR_ILLEGAL_ADDRESS, Res};
use crate::memory::texture::Object;

pub const TABLE: &[(&str, Kernel)] = &[
    ("trainer_init", init),
    ("trainer_fill", fill),
    ("trainer_gemm", gemm),
    ("trainer_bias_gelu", bias_gelu),
    ("trainer_bias_gelu_backward", bias_gelu_backward),
    ("trainer_dropout", dropout),
    ("trainer_softmax_xent", softmax_xent),
    ("trainer_column_sum", column_sum),
    ("trainer_mean", mean),
    ("trainer_add_scaled", add_scaled),
    ("trainer_adam", adam),
    ("trainer_pattern", pattern),
    ("trainer_stir", stir),
    ("trainer_stir_hidden", stir_hidden),
    ("trainer_checksum", checksum),
    ("trainer_smooth", smooth),
];

/// Values read by a kernel: the pointer is argument `index`.
fn input(launch: &Launch<'_>, index: usize, count: u64) -> Res<Vec<f32>> {
    Ok(launch
        .view::<f32>(launch.param(index)?, count, false)?
        .to_vec())
}

/// Values that a kernel writes.
fn output<'a>(launch: &Launch<'a>, index: usize, count: u64) -> Res<View<'a, f32>> {
    launch.view(launch.param(index)?, count, true)
}

fn size(launch: &Launch<'_>, index: usize) -> Res<u64> {
    launch.param::<u32>(index).map(u64::from)
}

fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

fn uniform(seed: u64, index: u64) -> f32 {
    (mix(seed ^ mix(index)) >> 40) as u32 as f32 * (1.0 / 16_777_216.0)
}

fn init(launch: &Launch<'_>) -> Res {
    let count = size(launch, 1)?;
    let (seed, bound): (u64, f32) = (launch.param(2)?, launch.param(3)?);
    let x = output(launch, 0, count)?;
    for i in 0..count {
        x.set(i as usize, (uniform(seed, i) * 2.0 - 1.0) * bound);
    }
    Ok(())
}

fn fill(launch: &Launch<'_>) -> Res {
    let count = size(launch, 1)?;
    let value: f32 = launch.param(2)?;
    let x = output(launch, 0, count)?;
    (0..count as usize).for_each(|i| x.set(i, value));
    Ok(())
}

/// Shape of a product: `c[m][n]`, sums over `k`.
#[derive(Clone, Copy)]
struct Shape {
    m: usize,
    n: usize,
    k: usize,
    trans_a: bool,
}

fn gemm(launch: &Launch<'_>) -> Res {
    let (m, n, k) = (size(launch, 3)?, size(launch, 4)?, size(launch, 5)?);
    let (trans_a, trans_b) = (size(launch, 6)? != 0, size(launch, 7)? != 0);
    let (a, b) = (input(launch, 0, m * k)?, input(launch, 1, k * n)?);
    let c = output(launch, 2, m * n)?;
    let shape = Shape {
        m: m as usize,
        n: n as usize,
        k: k as usize,
        trans_a,
    };
    let mut product = vec![0.0; shape.m * shape.n];
    // A product with one operand laid out the other way round, so that the inner loop runs along both rows.
    let b = if trans_b {
        transpose(&b, shape.n, shape.k)
    } else {
        b
    };
    multiply(&a, &b, &mut product, shape);
    for (i, value) in product.into_iter().enumerate() {
        c.set(i, value);
    }
    Ok(())
}

fn transpose(x: &[f32], rows: usize, cols: usize) -> Vec<f32> {
    let mut out = vec![0.0; x.len()];
    for row in 0..rows {
        for col in 0..cols {
            out[col * rows + row] = x[row * cols + col];
        }
    }
    out
}

fn multiply(a: &[f32], b: &[f32], c: &mut [f32], shape: Shape) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("fma") && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the features that the function is compiled for were found.
        unsafe { multiply_fma(a, b, c, shape) };
        return;
    }
    multiply_rows(a, b, c, shape);
}

/// The same loops with fused multiply-add as one instruction; the same bits as without.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "fma,avx2")]
fn multiply_fma(a: &[f32], b: &[f32], c: &mut [f32], shape: Shape) {
    multiply_rows(a, b, c, shape);
}

/// Each sum runs over k from 0 up, by fused multiply-add from 0.0.
#[inline(always)]
fn multiply_rows(a: &[f32], b: &[f32], c: &mut [f32], shape: Shape) {
    let Shape {
        m, n, k, trans_a, ..
    } = shape;
    if n == 0 {
        return;
    }
    for (row, sums) in c.chunks_exact_mut(n).enumerate() {
        for depth in 0..k {
            let factor = if trans_a {
                a[depth * m + row]
            } else {
                a[row * k + depth]
            };
            for (sum, value) in sums.iter_mut().zip(&b[depth * n..depth * n + n]) {
                *sum = factor.mul_add(*value, *sum);
            }
        }
    }
}

const GELU_A: f32 = 0.797_884_6;
const GELU_B: f32 = 0.044_715;

fn bias_gelu(launch: &Launch<'_>) -> Res {
    let (rows, cols) = (size(launch, 3)?, size(launch, 4)?);
    let (x, bias) = (input(launch, 0, rows * cols)?, input(launch, 1, cols)?);
    let y = output(launch, 2, rows * cols)?;
    for (i, x) in x.iter().enumerate() {
        let z = x + bias[i % cols as usize];
        let t = (GELU_A * (z + GELU_B * z * z * z)).tanh();
        y.set(i, 0.5 * z * (1.0 + t));
    }
    Ok(())
}

fn bias_gelu_backward(launch: &Launch<'_>) -> Res {
    let (rows, cols) = (size(launch, 4)?, size(launch, 5)?);
    let (x, bias) = (input(launch, 0, rows * cols)?, input(launch, 1, cols)?);
    let dy = input(launch, 2, rows * cols)?;
    let dx = output(launch, 3, rows * cols)?;
    for (i, (x, dy)) in x.iter().zip(&dy).enumerate() {
        let z = x + bias[i % cols as usize];
        let t = (GELU_A * (z + GELU_B * z * z * z)).tanh();
        let slope = GELU_A * (1.0 + 3.0 * GELU_B * z * z);
        dx.set(i, dy * (0.5 * (1.0 + t) + 0.5 * z * (1.0 - t * t) * slope));
    }
    Ok(())
}

fn dropout(launch: &Launch<'_>) -> Res {
    let count = size(launch, 1)?;
    let p: f32 = launch.param(2)?;
    let seed = launch
        .view::<u64>(launch.param(3)?, 1, false)?
        .get(0)
        .wrapping_add(size(launch, 4)?);
    let x = output(launch, 0, count)?;
    for i in 0..count as usize {
        let kept = x.get(i) * (1.0 / (1.0 - p));
        x.set(
            i,
            if uniform(seed, i as u64) < p {
                0.0
            } else {
                kept
            },
        );
    }
    Ok(())
}

fn softmax_xent(launch: &Launch<'_>) -> Res {
    let (rows, cols) = (size(launch, 5)?, size(launch, 6)?);
    let (logits, bias) = (input(launch, 0, rows * cols)?, input(launch, 1, cols)?);
    let labels = launch.view::<u32>(launch.param(2)?, rows, false)?;
    let row_loss = output(launch, 3, rows)?;
    let dlogits = output(launch, 4, rows * cols)?;
    let cols = cols as usize;
    for r in 0..rows as usize {
        let z: Vec<f32> = logits[r * cols..(r + 1) * cols]
            .iter()
            .zip(&bias)
            .map(|(z, b)| z + b)
            .collect();
        let top = z.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum = z.iter().fold(0.0, |sum, z| sum + (z - top).exp());
        let label = labels.get(r) as usize;
        let of_label = z.get(label).ok_or(ERROR_ILLEGAL_ADDRESS)?;
        row_loss.set(r, sum.ln() - (of_label - top));
        for (j, z) in z.iter().enumerate() {
            let p = (z - top).exp() / sum;
            dlogits.set(
                r * cols + j,
                (p - if j == label { 1.0 } else { 0.0 }) / rows as f32,
            );
        }
    }
    Ok(())
}

fn column_sum(launch: &Launch<'_>) -> Res {
    let (rows, cols) = (size(launch, 2)?, size(launch, 3)?);
    let x = input(launch, 0, rows * cols)?;
    let out = output(launch, 1, cols)?;
    let mut sums = vec![0.0_f32; cols as usize];
    for row in x.chunks_exact(sums.len().max(1)) {
        sums.iter_mut()
            .zip(row)
            .for_each(|(sum, value)| *sum += value);
    }
    sums.into_iter()
        .enumerate()
        .for_each(|(j, sum)| out.set(j, sum));
    Ok(())
}

fn mean(launch: &Launch<'_>) -> Res {
    let count = size(launch, 2)?;
    let sum = input(launch, 0, count)?
        .into_iter()
        .fold(0.0_f32, |sum, value| sum + value);
    output(launch, 1, 1)?.set(0, sum / count as f32);
    Ok(())
}

fn add_scaled(launch: &Launch<'_>) -> Res {
    let count = size(launch, 2)?;
    let y = input(launch, 1, count)?;
    let scale: f32 = launch.param(3)?;
    let x = output(launch, 0, count)?;
    y.iter()
        .enumerate()
        .for_each(|(i, y)| x.set(i, (x.get(i) + y) * scale));
    Ok(())
}

fn adam(launch: &Launch<'_>) -> Res {
    let count = size(launch, 4)?;
    let gradients = input(launch, 1, count)?;
    let (p, m, v) = (
        output(launch, 0, count)?,
        output(launch, 2, count)?,
        output(launch, 3, count)?,
    );
    let hyper = input(launch, 5, 2)?;
    let (beta1, beta2, eps): (f32, f32, f32) =
        (launch.param(6)?, launch.param(7)?, launch.param(8)?);
    for (i, gradient) in gradients.into_iter().enumerate() {
        let first = beta1 * m.get(i) + (1.0 - beta1) * gradient;
        let second = beta2 * v.get(i) + (1.0 - beta2) * gradient * gradient;
        m.set(i, first);
        v.set(i, second);
        p.set(
            i,
            p.get(i) - hyper[0] * first / (second.sqrt() * hyper[1] + eps),
        );
    }
    Ok(())
}

fn pattern(launch: &Launch<'_>) -> Res {
    let (count, seed): (u64, u64) = (launch.param(1)?, launch.param(2)?);
    let x = launch.view::<u32>(launch.param(0)?, count, true)?;
    (0..count).for_each(|i| x.set(i as usize, mix(seed ^ mix(i)) as u32));
    Ok(())
}

fn stir(launch: &Launch<'_>) -> Res {
    let (count, seed): (u64, u64) = (launch.param(1)?, launch.param(2)?);
    stir_words(launch, launch.param(0)?, count, seed)
}

fn stir_hidden(launch: &Launch<'_>) -> Res {
    let (index, count, seed): (u64, u64, u64) =
        (launch.param(1)?, launch.param(2)?, launch.param(3)?);
    let table = launch.view::<u64>(launch.param(0)?, index + 1, false)?;
    stir_words(launch, table.get(index as usize), count, seed)
}

fn stir_words(launch: &Launch<'_>, address: u64, count: u64, seed: u64) -> Res {
    let x = launch.view::<u32>(address, count, true)?;
    for i in 0..count {
        let word = x.get(i as usize);
        x.set(i as usize, mix(u64::from(word) ^ seed ^ mix(i)) as u32);
    }
    Ok(())
}

fn checksum(launch: &Launch<'_>) -> Res {
    let count: u64 = launch.param(1)?;
    let x = launch.view::<u32>(launch.param(0)?, count, false)?;
    let sum = (0..count).fold(0_u64, |sum, i| {
        sum.wrapping_add(mix(u64::from(x.get(i as usize)).wrapping_add(i << 32)))
    });
    launch.view::<u64>(launch.param(2)?, 1, true)?.set(0, sum);
    Ok(())
}

/// Through a texture and a surface.
fn smooth(launch: &Launch<'_>) -> Res {
    let (width, height) = (size(launch, 2)? as usize, size(launch, 3)? as usize);
    let (from, row) = Object::texels(launch, launch.param(0)?, false)?;
    let (to, to_row) = Object::texels(launch, launch.param(1)?, true)?;
    for y in 0..height {
        for x in 0..width {
            let at = |x: usize| from.get(y * row + x.min(row - 1));
            let (left, middle, right) = (at(x.saturating_sub(1)), at(x), at(x + 1));
            to.set(y * to_row + x, (0.25 * left + 0.5 * middle) + 0.25 * right);
        }
    }
    Ok(())
}
