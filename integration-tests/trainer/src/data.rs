//! Generated training data, drawn in this process or in worker processes connected by pipes.
//!
//! The generators are stateful on purpose: which batch comes next is known to the memory of the drawing process, and to
//! what lies in the pipe, and to nothing else.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;

use anyhow::{Context, Result, ensure};

use crate::processes::{Child, fork_child, pipe};
use crate::rng::{Pcg, mix};

/// One batch: `inputs` is [samples][features], `labels` one class a sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Batch {
    pub inputs: Vec<f32>,
    pub labels: Vec<u32>,
}

/// Draws samples uniformly and labels them by the largest of some fixed random projections.
#[derive(Debug)]
pub(crate) struct Generator {
    rng: Pcg,
    teacher: Vec<f32>,
    features: usize,
    classes: usize,
    samples: usize,
}

impl Generator {
    pub(crate) fn new(seed: u64, stream: u64, features: u32, classes: u32, samples: u32) -> Self {
        let mut teacher = Pcg::new(mix(seed), u64::from(u32::MAX));
        Self {
            rng: Pcg::new(seed, stream),
            teacher: (0..features as usize * classes as usize)
                .map(|_| teacher.symmetric())
                .collect(),
            features: features as usize,
            classes: classes as usize,
            samples: samples as usize,
        }
    }

    pub(crate) fn draw(&mut self) -> Batch {
        let mut inputs = Vec::with_capacity(self.samples * self.features);
        let mut labels = Vec::with_capacity(self.samples);
        for _ in 0..self.samples {
            let start = inputs.len();
            inputs.extend((0..self.features).map(|_| self.rng.symmetric()));
            let sample = &inputs[start..];
            let score = |class: usize| -> f32 {
                sample
                    .iter()
                    .enumerate()
                    .map(|(i, x)| x * self.teacher[i * self.classes + class])
                    .sum()
            };
            let mut best = (0, score(0));
            for class in 1..self.classes {
                let value = score(class);
                if value > best.1 {
                    best = (class, value);
                }
            }
            labels.push(best.0 as u32);
        }
        Batch { inputs, labels }
    }
}

/// Where batches come from.
#[derive(Debug)]
pub(crate) struct Loader {
    source: Source,
    /// Batches taken so far: the data cursor.
    cursor: u64,
}

#[derive(Debug)]
enum Source {
    Here(Generator),
    Workers(Vec<Worker>),
}

#[derive(Debug)]
struct Worker {
    pipe: File,
    samples: usize,
    features: usize,
    // Ends with its pipe; kept so that it is waited for.
    _child: Child,
}

impl Loader {
    /// With `workers` > 0, forks them: before CUDA is initialised, and before this process has a second thread.
    pub(crate) fn start(
        workers: u32,
        seed: u64,
        features: u32,
        classes: u32,
        samples: u32,
    ) -> Result<Self> {
        if workers == 0 {
            let generator = Generator::new(seed, 0, features, classes, samples);
            return Ok(Self {
                source: Source::Here(generator),
                cursor: 0,
            });
        }
        let mut started: Vec<Worker> = Vec::new();
        for number in 0..workers {
            let (read, write) = pipe()?;
            let child = fork_child(|| {
                // With a read end open here, this worker's write would not fail when the trainer is gone.
                for end in started.iter().map(|worker| &worker.pipe).chain([&read]) {
                    // SAFETY: the child never uses these again and ends without destructors.
                    unsafe { libc::close(end.as_raw_fd()) };
                }
                serve(
                    Generator::new(seed, u64::from(number) + 1, features, classes, samples),
                    &write,
                );
            })?;
            started.push(Worker {
                pipe: read,
                samples: samples as usize,
                features: features as usize,
                _child: child,
            });
        }
        Ok(Self {
            source: Source::Workers(started),
            cursor: 0,
        })
    }

    /// The next batch; from workers round robin.
    pub(crate) fn next(&mut self) -> Result<Batch> {
        let cursor = self.cursor;
        let batch = match &mut self.source {
            Source::Here(generator) => generator.draw(),
            Source::Workers(workers) => {
                let count = workers.len() as u64;
                let worker = &mut workers[(cursor % count) as usize];
                worker
                    .receive(cursor / count)
                    .with_context(|| format!("batch {cursor} from worker {}", cursor % count))?
            }
        };
        self.cursor += 1;
        Ok(batch)
    }
}

/// A message: its number, then inputs, then labels, little-endian.
fn encode(number: u64, batch: &Batch) -> Vec<u8> {
    let mut message = number.to_le_bytes().to_vec();
    message.extend(batch.inputs.iter().flat_map(|x| x.to_le_bytes()));
    message.extend(batch.labels.iter().flat_map(|x| x.to_le_bytes()));
    message
}

/// The worker's life: batches into the pipe, as many as it takes, until the trainer is gone.
fn serve(mut generator: Generator, mut pipe: &File) {
    for number in 0.. {
        if pipe.write_all(&encode(number, &generator.draw())).is_err() {
            return;
        }
    }
}

impl Worker {
    fn receive(&mut self, expected: u64) -> Result<Batch> {
        let mut number = [0; 8];
        self.pipe.read_exact(&mut number)?;
        let number = u64::from_le_bytes(number);
        ensure!(
            number == expected,
            "the worker sent its batch {number}, expected {expected}"
        );
        let words = self.samples * self.features;
        let mut body = vec![0; (words + self.samples) * 4];
        self.pipe.read_exact(&mut body)?;
        let (inputs, labels) = body.split_at(words * 4);
        let word = |bytes: &[u8]| [bytes[0], bytes[1], bytes[2], bytes[3]];
        Ok(Batch {
            inputs: inputs
                .chunks_exact(4)
                .map(|b| f32::from_le_bytes(word(b)))
                .collect(),
            labels: labels
                .chunks_exact(4)
                .map(|b| u32::from_le_bytes(word(b)))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_follow_from_the_seed_and_change() {
        let mut one = Generator::new(5, 0, 8, 4, 16);
        let mut other = Generator::new(5, 0, 8, 4, 16);
        let first = one.draw();
        assert_eq!(first, other.draw());
        assert_ne!(first, one.draw());
        assert_eq!(first.inputs.len(), 8 * 16);
        assert!(first.labels.iter().all(|&label| label < 4));
    }

    #[test]
    fn every_stream_labels_by_the_same_rule() {
        assert_eq!(
            Generator::new(5, 0, 8, 4, 16).teacher,
            Generator::new(5, 7, 8, 4, 16).teacher
        );
    }
}
