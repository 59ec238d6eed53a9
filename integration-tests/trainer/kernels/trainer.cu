// Kernels of the test trainer: a multi-layer perceptron with GELU, dropout, softmax cross-entropy and Adam.
//
// Rules, because a training run is compared bit for bit with another one:
//   - no atomics, and every sum has one fixed order;
//   - fused multiply-add only where it is written (fmaf); the PTX is compiled with --fmad=false;
//   - what changes from step to step (seed, learning rate) is read from device memory, so that a captured graph can be
//     replayed with unchanged parameters.
//
// gpu-sim has each entry as a Rust function bound by name. A kernel therefore depends on its parameters only, never on
// its launch shape, and parameters are 64-bit pointers, u64, u32 and f32. All matrices are row-major.

typedef unsigned int u32;
typedef unsigned long long u64;

#define TILE 16

// The global index of this thread in a one-dimensional launch; launches never exceed 2^32 threads.
__device__ __forceinline__ u64 global_index() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }

// splitmix64's finaliser: a counter-based generator, so that the backward pass can draw the mask again.
__device__ __forceinline__ u64 mix(u64 x) {
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

// Uniform in [0, 1) from the upper 24 bits.
__device__ __forceinline__ float uniform(u64 seed, u64 index) {
    return (float)(u32)(mix(seed ^ mix(index)) >> 40) * (1.0f / 16777216.0f);
}

// x[i] = uniform in [-bound, bound), i < n
extern "C" __global__ void trainer_init(float *x, u32 n, u64 seed, float bound) {
    u64 i = global_index();
    if (i < n) x[i] = (uniform(seed, i) * 2.0f - 1.0f) * bound;
}

// x[i] = value, i < n
extern "C" __global__ void trainer_fill(float *x, u32 n, float value) {
    u64 i = global_index();
    if (i < n) x[i] = value;
}

// c[m][n] = op(a) * op(b): a is [m][k], or [k][m] with trans_a = 1; b is [k][n], or [n][k] with trans_b = 1.
// The sum runs over k from 0 up, by fmaf from 0.0. Launch: 16x16 threads, grid (ceil(n/16), ceil(m/16)).
extern "C" __global__ void __launch_bounds__(TILE *TILE)
    trainer_gemm(const float *a, const float *b, float *c, u32 m, u32 n, u32 k, u32 trans_a, u32 trans_b) {
    __shared__ float tile_a[TILE][TILE + 1];
    __shared__ float tile_b[TILE][TILE + 1];
    u32 row = blockIdx.y * TILE + threadIdx.y;
    u32 column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (u32 base = 0; base < k; base += TILE) {
        u32 ka = base + threadIdx.x;
        u32 kb = base + threadIdx.y;
        tile_a[threadIdx.y][threadIdx.x] =
            (row < m && ka < k) ? (trans_a ? a[(u64)ka * m + row] : a[(u64)row * k + ka]) : 0.0f;
        tile_b[threadIdx.y][threadIdx.x] =
            (column < n && kb < k) ? (trans_b ? b[(u64)column * k + kb] : b[(u64)kb * n + column]) : 0.0f;
        __syncthreads();
        // Stopping at k instead of adding padding keeps the order and the number of additions as documented.
        u32 depth = k - base < TILE ? k - base : TILE;
        for (u32 i = 0; i < depth; i++) sum = fmaf(tile_a[threadIdx.y][i], tile_b[i][threadIdx.x], sum);
        __syncthreads();
    }
    if (row < m && column < n) c[(u64)row * n + column] = sum;
}

// GELU, tanh form: 0.5 z (1 + tanh(0.79788456 (z + 0.044715 z^3)))
#define GELU_A 0.7978845608f
#define GELU_B 0.044715f

// y[i] = gelu(x[i] + bias[column of i]), i < rows * cols
extern "C" __global__ void trainer_bias_gelu(const float *x, const float *bias, float *y, u32 rows, u32 cols) {
    u64 i = global_index();
    if (i >= (u64)rows * cols) return;
    float z = x[i] + bias[i % cols];
    float t = tanhf(GELU_A * (z + GELU_B * z * z * z));
    y[i] = 0.5f * z * (1.0f + t);
}

// dx[i] = dy[i] * gelu'(x[i] + bias[column of i]); dx may be dy
extern "C" __global__ void trainer_bias_gelu_backward(const float *x, const float *bias, const float *dy, float *dx,
                                                      u32 rows, u32 cols) {
    u64 i = global_index();
    if (i >= (u64)rows * cols) return;
    float z = x[i] + bias[i % cols];
    float t = tanhf(GELU_A * (z + GELU_B * z * z * z));
    float slope = GELU_A * (1.0f + 3.0f * GELU_B * z * z);
    dx[i] = dy[i] * (0.5f * (1.0f + t) + 0.5f * z * (1.0f - t * t) * slope);
}

// x[i] = uniform(seed + layer, i) < p ? 0 : x[i] / (1 - p), in place; seed points to one u64 in device memory.
// The same call on the gradient applies the same mask.
extern "C" __global__ void trainer_dropout(float *x, u32 n, float p, const u64 *seed, u32 layer) {
    u64 i = global_index();
    if (i >= n) return;
    x[i] = uniform(*seed + layer, i) < p ? 0.0f : x[i] * (1.0f / (1.0f - p));
}

// Softmax cross-entropy of logits + bias, one thread a row, sums over the columns from 0 up:
//   row_loss[r] = log(sum_j exp(z_j - max)) - (z_label - max)
//   dlogits[r][j] = (softmax_j - [j == label]) / rows
extern "C" __global__ void trainer_softmax_xent(const float *logits, const float *bias, const u32 *labels,
                                                float *row_loss, float *dlogits, u32 rows, u32 cols) {
    u64 r = global_index();
    if (r >= rows) return;
    const float *z = logits + r * cols;
    float *d = dlogits + r * cols;
    float top = z[0] + bias[0];
    for (u32 j = 1; j < cols; j++) top = fmaxf(top, z[j] + bias[j]);
    float sum = 0.0f;
    for (u32 j = 0; j < cols; j++) sum += expf(z[j] + bias[j] - top);
    u32 label = labels[r];
    row_loss[r] = logf(sum) - (z[label] + bias[label] - top);
    for (u32 j = 0; j < cols; j++) {
        float p = expf(z[j] + bias[j] - top) / sum;
        d[j] = (p - (j == label ? 1.0f : 0.0f)) / (float)rows;
    }
}

// out[j] = sum over r from 0 up of x[r][j], one thread a column
extern "C" __global__ void trainer_column_sum(const float *x, float *out, u32 rows, u32 cols) {
    u64 j = global_index();
    if (j >= cols) return;
    float sum = 0.0f;
    for (u32 r = 0; r < rows; r++) sum += x[(u64)r * cols + j];
    out[j] = sum;
}

// out[0] = (sum over i from 0 up of x[i]) / n, by one thread
extern "C" __global__ void trainer_mean(const float *x, float *out, u32 n) {
    if (global_index() != 0) return;
    float sum = 0.0f;
    for (u32 i = 0; i < n; i++) sum += x[i];
    out[0] = sum / (float)n;
}

// x[i] = (x[i] + y[i]) * scale: gradients of two devices averaged
extern "C" __global__ void trainer_add_scaled(float *x, const float *y, u32 n, float scale) {
    u64 i = global_index();
    if (i < n) x[i] = (x[i] + y[i]) * scale;
}

// Adam. hyper, in device memory: [0] = learning rate / (1 - beta1^t), [1] = 1 / sqrt(1 - beta2^t).
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g g;  p = p - hyper0 * m / (sqrt(v) * hyper1 + eps)
extern "C" __global__ void trainer_adam(float *p, const float *g, float *m, float *v, u32 n, const float *hyper,
                                        float beta1, float beta2, float eps) {
    u64 i = global_index();
    if (i >= n) return;
    float gradient = g[i];
    float first = beta1 * m[i] + (1.0f - beta1) * gradient;
    float second = beta2 * v[i] + (1.0f - beta2) * gradient * gradient;
    m[i] = first;
    v[i] = second;
    p[i] = p[i] - hyper[0] * first / (sqrtf(second) * hyper[1] + eps);
}

// x[i] = low 32 bits of mix(seed ^ mix(i)), i < n (words): content that neither compresses nor repeats. Any launch shape.
extern "C" __global__ void trainer_pattern(u32 *x, u64 n, u64 seed) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = global_index(); i < n; i += stride) x[i] = (u32)mix(seed ^ mix(i));
}

static __device__ void stir(u32 *x, u64 n, u64 seed) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = global_index(); i < n; i += stride) x[i] = (u32)mix(x[i] ^ seed ^ mix(i));
}

// Each of n words becomes one that follows from what it was: done twice or not at all it is another. Any launch shape.
extern "C" __global__ void trainer_stir(u32 *x, u64 n, u64 seed) { stir(x, n, seed); }

// The same for memory whose address no argument says: it stands in a table on the device.
extern "C" __global__ void trainer_stir_hidden(const u64 *table, u64 index, u64 n, u64 seed) { stir((u32 *)table[index], n, seed); }

// out[0] = sum over i < n of mix(x[i] + (i << 32)) modulo 2^64: any order gives the same. Launch: one block of 256.
extern "C" __global__ void __launch_bounds__(256) trainer_checksum(const u32 *x, u64 n, u64 *out) {
    __shared__ u64 partial[256];
    u64 sum = 0;
    for (u64 i = threadIdx.x; i < n; i += blockDim.x) sum += mix(x[i] + (i << 32));
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[0] = partial[0];
}

#ifdef __CUDACC_RTC__
// A field of width x height floats, read through a texture (points, clamped, not normalised) and written through a surface: each
// value becomes a quarter of its left neighbour, half of itself and a quarter of its right one. Launch: one thread for each value.
extern "C" __global__ void trainer_smooth(u64 from, u64 to, u32 width, u32 height) {
    u64 i = global_index();
    if (i >= (u64)width * height) return;
    u32 x = (u32)(i % width), y = (u32)(i / width);
    float value[3];
    for (int side = 0; side < 3; side++) {
        asm volatile("{ .reg .f32 g, b, a; tex.2d.v4.f32.f32 {%0, g, b, a}, [%1, {%2, %3}]; }"
                     : "=f"(value[side])
                     : "l"(from), "f"((float)x + (float)side - 0.5f), "f"((float)y + 0.5f));
    }
    float smooth = (0.25f * value[0] + 0.5f * value[1]) + 0.25f * value[2];
    asm volatile("sust.b.2d.b32.trap [%0, {%1, %2}], {%3};" : : "l"(to), "r"(x * 4), "r"(y), "r"(__float_as_uint(smooth)) : "memory");
}
#endif
