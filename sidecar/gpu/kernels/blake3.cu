// BLAKE3 of chunks of GPU memory: the digests that name chunks, computed where the chunks lie.
//
// Specification: J. O'Connor, J.-P. Aumasson, S. Neves, Z. Wilcox-O'Hearn, "BLAKE3: one function, fast everywhere", 2020,
// https://github.com/BLAKE3-team/BLAKE3-specs. The paper's "chunk" (1024 bytes) is called *leaf* here, because a chunk in
// phos-ft is what one digest names: up to 1 MiB.
//
//   chunk  = up to 1024 leaves, leaf = up to 16 blocks, block = 64 bytes
//
// One thread block digests one chunk. Each of its 256 threads compresses whole leaves (up to 4) and leaves their chaining
// values in shared memory; the threads then combine those pairwise, level by level, into the root. Static shared memory
// of 32 KiB, so the caller sets no function attribute.
//
// The chunks of an encrypted job are named in BLAKE3's keyed mode: the key's words stand where the initialisation vector
// stands otherwise, and every compression has one flag more. Both come as a parameter, by value.
//
// Compiled for the GPU by scripts/ptx.sh, and for the host by scripts/kernel-test.sh, which compares it with the
// reference implementation. Adapted to this use from the project's own probe (1.65 TB/s on an H200).

#ifndef PHOS_HOST_TEST
typedef unsigned char uint8_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#endif

// Where a chunk lies. addr is 16-byte aligned; len is 0 ..= 1 MiB. Nothing outside addr .. addr + len is read: what
// follows a chunk may be unmapped, or change while it is digested.
struct ChunkDesc {
    uint64_t addr;
    uint64_t len;
};

// Enumerators, because NVRTC puts a constexpr variable into the module's global memory.
enum Size : uint32_t {
    THREADS = 256,
    BLOCK_BYTES = 64,
    LEAF_BYTES = 1024,
    MAX_LEAVES = 1024,
    MAX_CHUNK_BYTES = MAX_LEAVES * LEAF_BYTES,
    PARENTS_PER_THREAD = MAX_LEAVES / 2 / THREADS,
};

// What the digests are keyed with: the little-endian words of a key and KEYED_HASH, or IV0 to IV7 and 0.
struct Key {
    uint32_t words[8];
    uint32_t flags;
};

// Domain separation flags, paper table 3.
enum Flag : uint32_t { CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8, KEYED_HASH = 16 };

#define IV0 0x6A09E667u
#define IV1 0xBB67AE85u
#define IV2 0x3C6EF372u
#define IV3 0xA54FF53Au
#define IV4 0x510E527Fu
#define IV5 0x9B05688Cu
#define IV6 0x1F83D9ABu
#define IV7 0x5BE0CD19u

// The quarter round, paper section 2.2. The funnel shift is one instruction on the GPU.
#define ROTATE(x, n) __funnelshift_r(x, x, n)
#define G(a, b, c, d, x, y)                                                                                            \
    a = a + b + (x);                                                                                                   \
    d = ROTATE(d ^ a, 16);                                                                                             \
    c = c + d;                                                                                                         \
    b = ROTATE(b ^ c, 12);                                                                                             \
    a = a + b + (y);                                                                                                   \
    d = ROTATE(d ^ a, 8);                                                                                              \
    c = c + d;                                                                                                         \
    b = ROTATE(b ^ c, 7);

// A round: columns, then diagonals, with the message words in the order that the round's permutation gives.
#define ROUND(i0, i1, i2, i3, i4, i5, i6, i7, i8, i9, i10, i11, i12, i13, i14, i15)                                    \
    G(v0, v4, v8, v12, m[i0], m[i1])                                                                                   \
    G(v1, v5, v9, v13, m[i2], m[i3])                                                                                   \
    G(v2, v6, v10, v14, m[i4], m[i5])                                                                                  \
    G(v3, v7, v11, v15, m[i6], m[i7])                                                                                  \
    G(v0, v5, v10, v15, m[i8], m[i9])                                                                                  \
    G(v1, v6, v11, v12, m[i10], m[i11])                                                                                \
    G(v2, v7, v8, v13, m[i12], m[i13])                                                                                 \
    G(v3, v4, v9, v14, m[i14], m[i15])

__device__ __forceinline__ void initial(const Key &key, uint32_t h[8]) {
#pragma unroll
    for (int i = 0; i < 8; i++) h[i] = key.words[i];
}

// The compression function, truncated to 8 words: h becomes the next chaining value. The counter's upper half is zero for
// every input this kernel takes. The permutation is written out per round so that every index is a constant and m stays
// in registers.
__device__ __forceinline__ void compress(uint32_t h[8], const uint32_t m[16], uint32_t counter, uint32_t length,
                                         uint32_t flags) {
    uint32_t v0 = h[0], v1 = h[1], v2 = h[2], v3 = h[3], v4 = h[4], v5 = h[5], v6 = h[6], v7 = h[7];
    uint32_t v8 = IV0, v9 = IV1, v10 = IV2, v11 = IV3, v12 = counter, v13 = 0, v14 = length, v15 = flags;
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
    ROUND(2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
    ROUND(3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1)
    ROUND(10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6)
    ROUND(12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4)
    ROUND(9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7)
    ROUND(11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13)
    h[0] = v0 ^ v8;
    h[1] = v1 ^ v9;
    h[2] = v2 ^ v10;
    h[3] = v3 ^ v11;
    h[4] = v4 ^ v12;
    h[5] = v5 ^ v13;
    h[6] = v6 ^ v14;
    h[7] = v7 ^ v15;
}

// A whole block by four 128-bit loads through the read-only path; p is 16-byte aligned.
__device__ __forceinline__ void load_block(const uint8_t *p, uint32_t m[16]) {
    const uint4 *q = (const uint4 *)p;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint4 word = __ldg(q + i);
        m[4 * i] = word.x;
        m[4 * i + 1] = word.y;
        m[4 * i + 2] = word.z;
        m[4 * i + 3] = word.w;
    }
}

// The last block of a chunk: length < 64 bytes, padded with zeros, read word by word and at the end byte by byte so that
// no byte behind it is touched. The loop over the words is unrolled: a variable index would put m in local memory.
__device__ __forceinline__ void load_partial_block(const uint8_t *p, uint32_t length, uint32_t m[16]) {
#pragma unroll
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t word = 0;
        if (4 * i + 4 <= length) {
            word = __ldg((const uint32_t *)p + i);
        } else {
            for (uint32_t b = 4 * i; b < length; b++) word |= (uint32_t)__ldg(p + b) << (8 * (b & 3));
        }
        m[i] = word;
    }
}

// The chaining value of a leaf of `length` bytes, 0 included: the empty input is one block of length 0. One block at a time
// (no unrolling): sixteen unrolled compressions do not fit the instruction cache. Neighbouring threads read addresses
// 1 KiB apart; each reads whole sectors, so no traffic is lost. Only the last block of a chunk can be partial; the branch
// for it costs full leaves nothing measurable.
__device__ __forceinline__ void hash_leaf(const Key &key, const uint8_t *p, uint32_t length, uint32_t index,
                                          uint32_t last_flags, uint32_t h[8]) {
    initial(key, h);
    const uint32_t blocks = length == 0 ? 1 : (length + BLOCK_BYTES - 1) / BLOCK_BYTES;
#pragma unroll 1
    for (uint32_t block = 0; block < blocks; block++) {
        uint32_t m[16];
        uint32_t left = length - block * BLOCK_BYTES;
        if (left >= BLOCK_BYTES) {
            left = BLOCK_BYTES;
            load_block(p + block * BLOCK_BYTES, m);
        } else {
            load_partial_block(p + block * BLOCK_BYTES, left, m);
        }
        compress(h, m, index, left,
                 key.flags | (block == 0 ? CHUNK_START : 0) | (block == blocks - 1 ? CHUNK_END | last_flags : 0));
    }
}

// Digests chunk descs[blockIdx.x] into digests[32 * blockIdx.x ..]. Launch: `count` blocks (one dimension) of 256 threads,
// no dynamic shared memory. digests is 4-byte aligned. A len above 1 MiB is a mistake of the caller and gives a digest of
// zeros, which is no chunk's name.
extern "C" __global__ void __launch_bounds__(THREADS)
    phos_blake3_chunks(const ChunkDesc *descs, uint8_t *digests, uint32_t count, const Key key) {
    // Chaining values word by word, cv[word][node]: neighbouring threads use neighbouring banks.
    __shared__ uint32_t cv[8][MAX_LEAVES];

    if (blockIdx.x >= count) return;
    const uint8_t *chunk = (const uint8_t *)descs[blockIdx.x].addr;
    const uint64_t len = descs[blockIdx.x].len;
    uint32_t *digest = (uint32_t *)(digests + (uint64_t)blockIdx.x * 32);
    if (len > MAX_CHUNK_BYTES) {
        if (threadIdx.x < 8) digest[threadIdx.x] = 0;
        return;
    }

    // Leaves. A chunk of one leaf has no parents: its last block is the root.
    const uint32_t leaves = len == 0 ? 1 : ((uint32_t)len + LEAF_BYTES - 1) / LEAF_BYTES;
    const uint32_t leaf_root = leaves == 1 ? ROOT : 0;
    for (uint32_t leaf = threadIdx.x; leaf < leaves; leaf += THREADS) {
        uint32_t h[8];
        const uint32_t left = (uint32_t)len - leaf * LEAF_BYTES;
        hash_leaf(key, chunk + (uint64_t)leaf * LEAF_BYTES, left < LEAF_BYTES ? left : LEAF_BYTES, leaf, leaf_root, h);
#pragma unroll
        for (int i = 0; i < 8; i++) cv[i][leaf] = h[i];
    }
    __syncthreads();

    // Parents. The tree of the paper (section 2.1: every left subtree is complete and as large as possible) is what
    // pairing neighbours level by level gives, when an odd last node moves up unchanged. Results are held in registers
    // until all children of the level are read, because they are stored over them.
    for (uint32_t nodes = leaves; nodes > 1;) {
        const uint32_t pairs = nodes / 2;
        const uint32_t next = pairs + (nodes & 1);
        const uint32_t flags = key.flags | (next == 1 ? PARENT | ROOT : PARENT);
        uint32_t held[PARENTS_PER_THREAD][8];
#pragma unroll
        for (uint32_t k = 0; k < PARENTS_PER_THREAD; k++) {
            const uint32_t node = threadIdx.x + k * THREADS;
            if (node < pairs) {
                uint32_t m[16];
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    m[i] = cv[i][2 * node];
                    m[8 + i] = cv[i][2 * node + 1];
                }
                initial(key, held[k]);
                compress(held[k], m, 0, BLOCK_BYTES, flags);
            } else if (node < next) {
#pragma unroll
                for (int i = 0; i < 8; i++) held[k][i] = cv[i][2 * node];
            }
        }
        __syncthreads();
#pragma unroll
        for (uint32_t k = 0; k < PARENTS_PER_THREAD; k++) {
            const uint32_t node = threadIdx.x + k * THREADS;
            if (node < next) {
#pragma unroll
                for (int i = 0; i < 8; i++) cv[i][node] = held[k][i];
            }
        }
        __syncthreads();
        nodes = next;
    }

    // Little-endian words, as the paper has the output bytes and as the GPU stores them.
    if (threadIdx.x < 8) digest[threadIdx.x] = cv[threadIdx.x][0];
}
