//! What each way of writing chunks down saves and costs on memory of a training job: prints the tables of `docs/encoding.md`.
//!
//!     phos-encoding-table [DIR]
//!
//! Measures what `integration-tests/gpu/state.py DIR` wrote down of a large job on a GPU, in files by kind. Without a directory
//! the numbers are those of a small network that is trained here with Adam for some steps, and the CPU heap is that of a Python
//! process which imported what programs import. One thread.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement: it ends where something is not as it should be"
)]

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use phos_policies::encoding::{self, Shape};
use phos_storage::fuzzing::{decode_chunk, encode_chunk_by};
use phos_storage::{CHUNK_SIZE, Encoding, EncodingPolicy, Sample};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Inputs and outputs, and the width between.
const WIDTHS: [usize; 4] = [512, 1024, 1024, 512];
const BATCH: usize = 32;

/// A dense layer with Adam's moments.
struct Layer {
    inputs: usize,
    outputs: usize,
    weights: Vec<f32>,
    first: Vec<f32>,
    second: Vec<f32>,
    gradient: Vec<f32>,
}

fn normal(rng: &mut ChaCha8Rng) -> f32 {
    // Box and Muller.
    let (a, b): (f32, f32) = (rng.random_range(1e-7..1.0), rng.random_range(0.0..1.0));
    (-2.0 * a.ln()).sqrt() * (std::f32::consts::TAU * b).cos()
}

impl Layer {
    fn new(inputs: usize, outputs: usize, rng: &mut ChaCha8Rng) -> Self {
        let scale = (2.0 / inputs as f32).sqrt();
        let count = inputs * outputs;
        Self {
            inputs,
            outputs,
            weights: (0..count).map(|_| scale * normal(rng)).collect(),
            first: vec![0.0; count],
            second: vec![0.0; count],
            gradient: vec![0.0; count],
        }
    }

    fn forward(&self, input: &[f32]) -> Vec<f32> {
        let mut output = vec![0.0; BATCH * self.outputs];
        for (row, out) in input
            .chunks(self.inputs)
            .zip(output.chunks_mut(self.outputs))
        {
            for (x, weights) in row.iter().zip(self.weights.chunks(self.outputs)) {
                if *x != 0.0 {
                    for (o, w) in out.iter_mut().zip(weights) {
                        *o += x * w;
                    }
                }
            }
        }
        output
    }

    /// Keeps its own gradient, gives back that of its input.
    fn backward(&mut self, input: &[f32], gradient: &[f32]) -> Vec<f32> {
        self.gradient.fill(0.0);
        let mut back = vec![0.0; BATCH * self.inputs];
        let rows = input.chunks(self.inputs).zip(gradient.chunks(self.outputs));
        for ((row, grad), back) in rows.zip(back.chunks_mut(self.inputs)) {
            for (i, (x, b)) in row.iter().zip(back).enumerate() {
                let at = i * self.outputs..(i + 1) * self.outputs;
                let mut sum = 0.0;
                for ((g, w), own) in
                    (grad.iter().zip(&self.weights[at.clone()])).zip(&mut self.gradient[at])
                {
                    sum += g * w;
                    *own += x * g;
                }
                *b = sum;
            }
        }
        back
    }

    fn adam(&mut self, step: i32) {
        let (rate, b1, b2) = (1e-3_f32, 0.9_f32, 0.999_f32);
        let correct = (1.0 - b2.powi(step)).sqrt() / (1.0 - b1.powi(step));
        for (((w, m), v), g) in (self.weights.iter_mut().zip(&mut self.first))
            .zip(&mut self.second)
            .zip(&self.gradient)
        {
            *m = b1 * *m + (1.0 - b1) * g;
            *v = b2 * *v + (1.0 - b2) * g * g;
            *w -= rate * correct * *m / (v.sqrt() + 1e-8) + rate * 0.01 * *w;
        }
    }
}

/// What a training job holds after some steps.
struct State {
    layers: Vec<Layer>,
    activations: Vec<f32>,
    losses: (f32, f32),
}

fn train(steps: i32) -> State {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut layers: Vec<Layer> = (WIDTHS.windows(2))
        .map(|w| Layer::new(w[0], w[1], &mut rng))
        .collect();
    let teacher = Layer::new(WIDTHS[0], WIDTHS[3], &mut rng);
    let mut activations = Vec::new();
    let mut losses = (0.0, 0.0);
    for step in 1..=steps {
        let input: Vec<f32> = (0..BATCH * WIDTHS[0]).map(|_| normal(&mut rng)).collect();
        let target = teacher.forward(&input);
        let mut values = vec![input];
        for (i, layer) in layers.iter().enumerate() {
            let mut value = layer.forward(&values[i]);
            if i + 1 < WIDTHS.len() - 1 {
                value.iter_mut().for_each(|v| *v = v.max(0.0));
            }
            values.push(value);
        }
        let output = values.last().unwrap();
        let count = output.len() as f32;
        let mut gradient: Vec<f32> = (output.iter().zip(&target))
            .map(|(o, t)| 2.0 * (o - t) / count)
            .collect();
        let loss = (output.iter().zip(&target))
            .map(|(o, t)| (o - t).powi(2))
            .sum::<f32>()
            / count;
        losses = (if step == 1 { loss } else { losses.0 }, loss);
        for (i, layer) in layers.iter_mut().enumerate().rev() {
            gradient = layer.backward(&values[i], &gradient);
            if i > 0 {
                for (g, v) in gradient.iter_mut().zip(&values[i]) {
                    *g *= f32::from(u8::from(*v > 0.0));
                }
            }
            layer.adam(step);
        }
        if step + 16 > steps {
            activations.extend(values.into_iter().flatten());
        }
    }
    State {
        layers,
        activations,
        losses,
    }
}

fn bytes_of(numbers: impl Iterator<Item = f32>) -> Vec<u8> {
    numbers.flat_map(f32::to_le_bytes).collect()
}

/// Rounded to the nearest, as frameworks do.
fn halves_of(numbers: impl Iterator<Item = f32>) -> Vec<u8> {
    let half = |n: f32| {
        let bits = n.to_bits();
        ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16
    };
    numbers.flat_map(|n| half(n).to_le_bytes()).collect()
}

/// The writable anonymous memory of a Python process.
fn heap() -> Vec<u8> {
    let python = concat!(env!("CARGO_MANIFEST_DIR"), "/../.build/venv/bin/python");
    let code = "import sys, json, ssl, decimal, asyncio, http.server, botocore.session\n\
        d = [json.dumps({'step': i, 'loss': 1 / (i + 1), 'files': ['shard-%05d' % i] * 3}) for i in range(20000)]\n\
        print('ready', flush=True); sys.stdin.read()";
    let mut child = Command::new(python)
        .args(["-c", code])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut word = [0; 5];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut word)
        .unwrap();
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", child.id())).unwrap();
    let mut memory = std::fs::File::open(format!("/proc/{}/mem", child.id())).unwrap();
    let mut heap = Vec::new();
    for line in maps.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let anonymous = words.len() == 5 || words.get(5) == Some(&"[heap]");
        if !anonymous || !words[1].starts_with("rw") {
            continue;
        }
        let (from, to) = words[0].split_once('-').unwrap();
        let at = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let mut part = vec![0; (at(to) - at(from)) as usize];
        memory.seek(SeekFrom::Start(at(from))).unwrap();
        if memory.read_exact(&mut part).is_ok() {
            heap.extend(part);
        }
    }
    child.stdin.take().unwrap().flush().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    heap
}

/// One way for all.
#[derive(Debug)]
struct Always(Encoding);

impl EncodingPolicy for Always {
    fn choose(&self, _: &Sample<'_>) -> Encoding {
        self.0
    }
}

/// What a policy makes of some chunks.
struct Measured {
    /// Stored bytes for each that there was.
    share: f64,
    /// MB/s of the chunks, encoded.
    into: f64,
    /// MB/s of the chunks, decoded.
    out: f64,
    /// Chunks by the number of their codec.
    codecs: BTreeMap<u8, usize>,
}

fn measure(chunks: &[&[u8]], policy: &dyn EncodingPolicy) -> Measured {
    let raw: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    let (mut into, mut out) = (Duration::ZERO, Duration::ZERO);
    let mut stored = 0;
    let mut codecs = BTreeMap::new();
    for chunk in chunks {
        let began = Instant::now();
        let (codec, bytes) = encode_chunk_by(chunk, policy).unwrap();
        into += began.elapsed();
        stored += bytes.len();
        *codecs.entry(codec).or_default() += 1;
        let began = Instant::now();
        let back = decode_chunk(codec, bytes, chunk.len() as u32).unwrap();
        out += began.elapsed();
        assert!(back == *chunk, "another chunk came back");
    }
    let rate = |time: Duration| raw as f64 / 1e6 / time.as_secs_f64();
    Measured {
        share: stored as f64 / raw as f64,
        into: rate(into),
        out: rate(out),
        codecs,
    }
}

/// The policy of `phos-ft` where nothing waits.
#[derive(Debug)]
struct FirstLevel;

impl EncodingPolicy for FirstLevel {
    fn choose(&self, sample: &Sample<'_>) -> Encoding {
        let shape = encoding::choose(encoding::Sample {
            bytes: sample.len(),
            plain: sample.plain(),
            planes2: sample.planes2(),
            planes4: sample.planes4(),
        });
        match shape {
            Shape::Raw => Encoding::Raw,
            Shape::Plain => Encoding::Zstd(encoding::LEVELS[0]),
            Shape::Planes2 => Encoding::Planes2(encoding::PLANES),
            Shape::Planes4 => Encoding::Planes4(encoding::PLANES),
        }
    }
}

/// What a job holds, by kind.
fn trained() -> Vec<(String, Vec<u8>)> {
    let state = train(60);
    assert!(
        state.losses.1 < state.losses.0,
        "it learns nothing: {:?}",
        state.losses
    );
    let weights = || state.layers.iter().flat_map(|l| l.weights.iter().copied());
    let kinds = [
        ("fp32 weights", bytes_of(weights())),
        ("bf16 weights", halves_of(weights())),
        (
            "Adam, first moment, fp32",
            bytes_of(state.layers.iter().flat_map(|l| l.first.iter().copied())),
        ),
        (
            "Adam, second moment, fp32",
            bytes_of(state.layers.iter().flat_map(|l| l.second.iter().copied())),
        ),
        (
            "gradients, bf16",
            halves_of(state.layers.iter().flat_map(|l| l.gradient.iter().copied())),
        ),
        (
            "activations, fp32",
            bytes_of(state.activations.iter().copied()),
        ),
        (
            "activations, bf16",
            halves_of(state.activations.iter().copied()),
        ),
        ("CPU heap", heap()),
    ];
    kinds.map(|(what, bytes)| (what.to_owned(), bytes)).into()
}

/// What was written down of a job, by kind.
fn written_down(directory: &str) -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    let name = |file: &std::fs::DirEntry| file.file_name().into_string().unwrap();
    let mut kinds: Vec<_> = files
        .map(|file| (name(&file), std::fs::read(file.path()).unwrap()))
        .collect();
    kinds.sort();
    assert!(!kinds.is_empty(), "{directory} is empty");
    kinds
}

fn main() {
    let kinds = match std::env::args().nth(1) {
        Some(directory) => written_down(&directory),
        None => trained(),
    };
    let fixed: [(&str, Encoding); 8] = [
        ("zstd -3", Encoding::Zstd(-3)),
        ("zstd 1", Encoding::Zstd(1)),
        ("zstd 3", Encoding::Zstd(3)),
        ("zstd 9", Encoding::Zstd(9)),
        ("planes of 2, zstd 1", Encoding::Planes2(1)),
        ("planes of 2, zstd 9", Encoding::Planes2(9)),
        ("planes of 4, zstd 1", Encoding::Planes4(1)),
        ("planes of 4, zstd 9", Encoding::Planes4(9)),
    ];
    print!(
        "| memory | MiB | as phos-ft does | raw, zstd, planes of 2, of 4, zero | in, out, MB/s |"
    );
    fixed.iter().for_each(|(way, _)| print!(" {way} |"));
    println!("\n|---|---|---|---|---|{}", "---|".repeat(fixed.len()));
    for (what, bytes) in &kinds {
        let chunks: Vec<&[u8]> = bytes.chunks(CHUNK_SIZE).collect();
        let done = measure(&chunks, &FirstLevel);
        // In the order of the heading; see `Codec`.
        let codecs = [1, 2, 3, 4, 0].map(|codec| done.codecs.get(&codec).copied().unwrap_or(0));
        let codecs = codecs.map(|count| count.to_string()).join(", ");
        let mib = bytes.len() as f64 / f64::from(1 << 20);
        print!(
            "| {what} | {mib:.0} | **{:.1}%** | {codecs} | {:.0}, {:.0} |",
            100.0 * done.share,
            done.into,
            done.out
        );
        for (_, encoding) in &fixed {
            let done = measure(&chunks, &Always(*encoding));
            print!(" {:.1}% |", 100.0 * done.share);
        }
        println!();
    }
}
