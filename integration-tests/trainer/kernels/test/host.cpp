// Runs the trainer's kernels on the host: results against plain formulas, gradients against differences of the function
// they are the gradient of. Everything lies in allocations of exactly its size, for AddressSanitizer.
#include "../../../../sidecar/gpu/kernels/test/cuda_on_host.h"

#include "../trainer.cu"

#include <random>

static std::mt19937 rng(1);
static int failures = 0;

#define EXPECT(condition, ...)                                                                                         \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            failures++;                                                                                                \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                                            \
            fprintf(stderr, __VA_ARGS__);                                                                              \
            fprintf(stderr, "\n");                                                                                     \
        }                                                                                                              \
    } while (0)

static std::vector<float> random_values(size_t n, float bound = 1.0f) {
    std::uniform_real_distribution<float> d(-bound, bound);
    std::vector<float> v(n);
    for (float &x : v) x = d(rng);
    return v;
}

static void each(u32 n, std::function<void()> kernel) { host::launch({(n + 63) / 64, 1}, {64, 1}, host::SHUFFLED, kernel); }

static bool near(double a, double b, double tolerance) { return std::fabs(a - b) <= tolerance * (1.0 + std::fabs(b)); }

static void gemm() {
    const u32 sizes[][3] = {{1, 1, 1}, {16, 16, 16}, {17, 5, 33}, {3, 40, 15}, {32, 16, 48}, {31, 33, 17}};
    for (auto [m, n, k] : sizes) {
        for (u32 trans = 0; trans < 4; trans++) {
            const u32 ta = trans & 1, tb = trans >> 1;
            auto a = random_values(m * k), b = random_values(k * n);
            for (int order = 0; order < host::ORDERS; order++) {
                std::vector<float> c(m * n, NAN);
                host::launch({(n + 15) / 16, (m + 15) / 16}, {16, 16}, (host::Order)order,
                             [&, m = m, n = n, k = k] { trainer_gemm(a.data(), b.data(), c.data(), m, n, k, ta, tb); });
                for (u32 i = 0; i < m; i++) {
                    for (u32 j = 0; j < n; j++) {
                        float want = 0.0f;
                        for (u32 l = 0; l < k; l++)
                            want = fmaf(ta ? a[l * m + i] : a[i * k + l], tb ? b[j * k + l] : b[l * n + j], want);
                        EXPECT(c[i * n + j] == want, "%ux%ux%u trans %u order %d", m, n, k, trans, order);
                    }
                }
            }
        }
    }
}

static double gelu(double z) { return 0.5 * z * (1 + std::tanh(0.7978845608 * (z + 0.044715 * z * z * z))); }

static void activation() {
    const u32 rows = 7, cols = 11, n = rows * cols;
    auto x = random_values(n, 4), bias = random_values(cols), dy = random_values(n);
    std::vector<float> y(n), dx(n);
    each(n, [&] { trainer_bias_gelu(x.data(), bias.data(), y.data(), rows, cols); });
    each(n, [&] { trainer_bias_gelu_backward(x.data(), bias.data(), dy.data(), dx.data(), rows, cols); });
    for (u32 i = 0; i < n; i++) {
        double z = x[i] + bias[i % cols], h = 1e-5;
        EXPECT(near(y[i], gelu(z), 1e-5), "i %u", i);
        EXPECT(near(dx[i], dy[i] * (gelu(z + h) - gelu(z - h)) / (2 * h), 1e-4), "i %u", i);
    }
}

static void loss() {
    const u32 rows = 9, cols = 5;
    auto logits = random_values(rows * cols, 3), bias = random_values(cols);
    std::vector<u32> labels(rows);
    for (u32 &label : labels) label = rng() % cols;
    std::vector<float> row(rows), d(rows * cols), mean(1);
    each(rows, [&] { trainer_softmax_xent(logits.data(), bias.data(), labels.data(), row.data(), d.data(), rows, cols); });
    each(1, [&] { trainer_mean(row.data(), mean.data(), rows); });
    auto value = [&](u32 r, u32 moved, double h) {
        double sum = 0, of_label = 0;
        for (u32 j = 0; j < cols; j++) {
            double z = logits[r * cols + j] + bias[j] + (j == moved ? h : 0);
            sum += std::exp(z);
            if (j == labels[r]) of_label = z;
        }
        return std::log(sum) - of_label;
    };
    double total = 0;
    for (u32 r = 0; r < rows; r++) {
        total += value(r, 0, 0);
        EXPECT(near(row[r], value(r, 0, 0), 1e-5), "row %u", r);
        for (u32 j = 0; j < cols; j++) {
            double slope = (value(r, j, 1e-5) - value(r, j, -1e-5)) / 2e-5 / rows;
            EXPECT(near(d[r * cols + j], slope, 1e-5), "row %u column %u", r, j);
        }
    }
    EXPECT(near(mean[0], total / rows, 1e-5), "%f", mean[0]);
}

static void sums() {
    const u32 rows = 13, cols = 70;
    auto x = random_values(rows * cols), y = random_values(rows * cols), before = x;
    std::vector<float> out(cols);
    each(cols, [&] { trainer_column_sum(x.data(), out.data(), rows, cols); });
    for (u32 j = 0; j < cols; j++) {
        float want = 0;
        for (u32 r = 0; r < rows; r++) want += x[r * cols + j];
        EXPECT(out[j] == want, "column %u", j);
    }
    each(rows * cols, [&] { trainer_add_scaled(x.data(), y.data(), rows * cols, 0.5f); });
    for (u32 i = 0; i < rows * cols; i++) EXPECT(x[i] == (before[i] + y[i]) * 0.5f, "i %u", i);
}

static void dropout() {
    const u32 n = 20000;
    const u64 seed = 42;
    std::vector<float> a(n, 1.0f), b(n, 3.0f), other(n, 1.0f);
    each(n, [&] { trainer_dropout(a.data(), n, 0.25f, &seed, 1); });
    each(n, [&] { trainer_dropout(b.data(), n, 0.25f, &seed, 1); });
    each(n, [&] { trainer_dropout(other.data(), n, 0.25f, &seed, 2); });
    u32 zeros = 0, same = 0;
    for (u32 i = 0; i < n; i++) {
        zeros += a[i] == 0;
        same += (a[i] == 0) == (other[i] == 0);
        EXPECT((a[i] == 0) == (b[i] == 0) && (a[i] == 0 || near(a[i], 4.0 / 3, 1e-6)), "i %u", i);
    }
    EXPECT(zeros > n * 0.23 && zeros < n * 0.27, "%u", zeros);
    EXPECT(same < n * 0.7, "masks of two layers agree in %u of %u", same, n);
}

static void adam() {
    const u32 n = 100;
    auto p = random_values(n), g = random_values(n), m = random_values(n), v = random_values(n);
    for (float &x : v) x = std::fabs(x);
    auto p0 = p, m0 = m, v0 = v;
    const float hyper[2] = {2e-3f, 1.7f};
    each(n, [&] { trainer_adam(p.data(), g.data(), m.data(), v.data(), n, hyper, 0.9f, 0.999f, 1e-8f); });
    for (u32 i = 0; i < n; i++) {
        double first = 0.9 * m0[i] + 0.1 * g[i], second = 0.999 * v0[i] + 0.001 * g[i] * g[i];
        EXPECT(near(m[i], first, 1e-5) && near(v[i], second, 1e-5), "i %u", i);
        EXPECT(near(p[i], p0[i] - hyper[0] * first / (std::sqrt(second) * hyper[1] + 1e-8), 1e-5), "i %u", i);
    }
}

static void content() {
    const u32 n = 1003;
    std::vector<u32> x(n);
    host::launch({3, 1}, {64, 1}, host::ASCENDING, [&] { trainer_pattern(x.data(), n, 9); });
    u64 want = 0;
    for (u32 i = 0; i < n; i++) {
        EXPECT(x[i] == (u32)mix(9 ^ mix(i)), "i %u", i);
        want += mix(x[i] + ((u64)i << 32));
    }
    for (int order = 0; order < host::ORDERS; order++) {
        u64 sum = 0;
        host::launch({1, 1}, {256, 1}, (host::Order)order, [&] { trainer_checksum(x.data(), n, &sum); });
        EXPECT(sum == want, "order %d", order);
    }
    std::vector<float> w(n);
    each(n, [&] { trainer_init(w.data(), n, 7, 0.5f); });
    for (u32 i = 0; i < n; i++) EXPECT(w[i] >= -0.5f && w[i] <= 0.5f, "%f", w[i]);
    each(n, [&] { trainer_fill(w.data(), n, 2.0f); });
    for (u32 i = 0; i < n; i++) EXPECT(w[i] == 2.0f, "%f", w[i]);
}

int main() {
    gemm();
    activation();
    loss();
    sums();
    dropout();
    adam();
    content();
    if (failures == 0) printf("kernel-test: the trainer's kernels are right\n");
    return failures != 0;
}
