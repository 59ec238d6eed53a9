// Arrays, textures and surfaces at full speed: a field is read through a texture with linear filtering and written through a
// surface into the next array, layered ones too. A line `step bits` for each step; see record.py.
#include "check.cuh"
#include <cstdint>
#include <cstdlib>
#include <cuda_runtime.h>

enum { WIDTH = 1024, HEIGHT = 1024, LAYERS = 4, INNER = 128 };

__global__ void smooth(cudaTextureObject_t from, cudaTextureObject_t layers, cudaSurfaceObject_t to, int step) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float middle = tex2D<float>(from, x + 0.5f, y + 0.5f);
    float around = tex2D<float>(from, x + 1.25f, y + 0.5f) + tex2D<float>(from, x - 0.25f, y + 0.75f);
    float source = tex2DLayered<float>(layers, x + 0.5f, y + 0.5f, step % LAYERS);
    surf2Dwrite(0.5f * middle + 0.24f * around + 0.02f * source, to, x * (int)sizeof(float), y);
}

// Each block adds in a fixed order.
__global__ void sums(cudaTextureObject_t from, float *out) {
    __shared__ float part[256];
    float sum = 0;
    for (int x = threadIdx.x; x < WIDTH; x += 256) sum += tex2D<float>(from, x + 0.5f, blockIdx.x + 0.5f);
    part[threadIdx.x] = sum;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

static cudaTextureObject_t texture(cudaArray_t array) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc how = {};
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
    how.filterMode = cudaFilterModeLinear;
    how.readMode = cudaReadModeElementType;
    cudaTextureObject_t object = 0;
    return cudaCreateTextureObject(&object, &resource, &how, nullptr) == cudaSuccess ? object : 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t fields[2], layers;
    cudaTextureObject_t textures[2];
    cudaSurfaceObject_t surfaces[2];
    float *out, *host = (float *)malloc(WIDTH * HEIGHT * LAYERS * sizeof(float)), rows[HEIGHT];
    uint32_t random = 1;
    for (int i = 0; i < WIDTH * HEIGHT * LAYERS; i++) {
        random = random * 1664525u + 1013904223u;
        host[i] = (float)(random >> 8) / (1 << 24);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(cudaMallocArray(&fields[i], &format, WIDTH, HEIGHT, cudaArraySurfaceLoadStore));
        CHECK(cudaMemcpy2DToArray(fields[i], 0, 0, host, WIDTH * sizeof(float), WIDTH * sizeof(float), HEIGHT, cudaMemcpyHostToDevice));
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeArray;
        resource.res.array.array = fields[i];
        CHECK(cudaCreateSurfaceObject(&surfaces[i], &resource));
        textures[i] = texture(fields[i]);
    }
    CHECK(cudaMalloc3DArray(&layers, &format, make_cudaExtent(WIDTH, HEIGHT, LAYERS), cudaArrayLayered));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(host, WIDTH * sizeof(float), WIDTH, HEIGHT);
    copy.dstArray = layers;
    copy.extent = make_cudaExtent(WIDTH, HEIGHT, LAYERS);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    cudaTextureObject_t layered = texture(layers);
    if (!textures[0] || !textures[1] || !layered) {
        fprintf(stderr, "no texture: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
    CHECK(cudaMalloc(&out, HEIGHT * sizeof(float)));
    FILE *log = fopen(argv[1], "a");
    if (!log) return 1;
    int now = 0;
    for (long step = 0; step < atol(argv[2]); step++) {
        for (int i = 0; i < INNER; i++, now ^= 1)
            smooth<<<dim3(WIDTH / 32, HEIGHT / 8), dim3(32, 8)>>>(textures[now], layered, surfaces[now ^ 1], (int)(step + i));
        sums<<<HEIGHT, 256>>>(textures[now], out);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(rows, out, sizeof rows, cudaMemcpyDeviceToHost));
        double sum = 0;
        for (int i = 0; i < HEIGHT; i++) sum += rows[i];
        if (!record(log, step, sum)) break;
    }
    return 0;
}
