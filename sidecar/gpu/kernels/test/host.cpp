// Runs the BLAKE3 kernel's own source on the host. Each chunk lies in an allocation of exactly its size, so that
// AddressSanitizer sees a read behind its end.
//
// stdin: the kernel's Key (36 bytes), then repeated { u64 length, bytes }, little-endian; stdout: the 32 bytes of each
// digest. scripts/kernel-test.sh drives it.
#include "cuda_on_host.h"

#include "../blake3.cu"

int main() {
    Key key;
    static_assert(sizeof key == 36, "as the caller packs it");
    if (fread(&key, sizeof key, 1, stdin) != 1) return 1;
    uint64_t length;
    while (fread(&length, sizeof length, 1, stdin) == 1) {
        // malloc gives 16-byte alignment and, under AddressSanitizer, an end that is exact to the byte.
        uint8_t *data = (uint8_t *)malloc(length ? length : 1);
        if (length != 0 && fread(data, length, 1, stdin) != 1) {
            fprintf(stderr, "short input\n");
            return 1;
        }
        uint8_t first[32];
        for (int order = 0; order < host::ORDERS; order++) {
            uint8_t digest[64];
            memset(digest, 0xAA, sizeof digest);
            ChunkDesc desc = {(uint64_t)(uintptr_t)data, length};
            // One block more than there are chunks: the surplus must do nothing.
            host::launch({2, 1}, {THREADS, 1}, (host::Order)order, [&] { phos_blake3_chunks(&desc, digest, 1, key); });
            for (int i = 32; i < 64; i++) {
                if (digest[i] != 0xAA) {
                    fprintf(stderr, "length %llu: wrote behind its digest\n", (unsigned long long)length);
                    return 1;
                }
            }
            if (order == 0) memcpy(first, digest, 32);
            if (memcmp(first, digest, 32) != 0) {
                fprintf(stderr, "length %llu: the digest depends on the order of threads\n", (unsigned long long)length);
                return 1;
            }
        }
        fwrite(first, 32, 1, stdout);
        free(data);
    }
    return 0;
}
