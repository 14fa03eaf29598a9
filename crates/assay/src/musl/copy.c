// memcpy and memmove of the static program on x86-64.
//
// musl's use `rep movsq`, whose start alone costs more than most copies of a database: SQLite spent 30 % of its time
// there, and was measured 60 % slower than in the dynamic program. Both are here, because musl's memmove needs its
// memcpy. Up to 64 bytes, everything is loaded before anything is stored; longer copies do that for 64 bytes at a time.
//
// Compiled without -ftree-loop-distribute-patterns: the compiler would call memcpy in here.

#include <emmintrin.h>
#include <stddef.h>
#include <stdint.h>

typedef uint16_t two __attribute__((may_alias, aligned(1)));
typedef uint32_t four __attribute__((may_alias, aligned(1)));
typedef uint64_t eight __attribute__((may_alias, aligned(1)));

static inline __m128i load(const char *from) { return _mm_loadu_si128((const __m128i *)from); }
static inline void store(char *to, __m128i value) { _mm_storeu_si128((__m128i *)to, value); }

// At most 16 bytes: the first and the last of them, which may overlap.
static inline void copy_few(char *to, const char *from, size_t n) {
    if (n >= 8) {
        eight first = *(const eight *)from, last = *(const eight *)(from + n - 8);
        *(eight *)to = first;
        *(eight *)(to + n - 8) = last;
    } else if (n >= 4) {
        four first = *(const four *)from, last = *(const four *)(from + n - 4);
        *(four *)to = first;
        *(four *)(to + n - 4) = last;
    } else if (n >= 2) {
        two first = *(const two *)from, last = *(const two *)(from + n - 2);
        *(two *)to = first;
        *(two *)(to + n - 2) = last;
    } else if (n == 1) {
        *to = *from;
    }
}

static inline void copy_64(char *to, const char *from) {
    __m128i a = load(from), b = load(from + 16), c = load(from + 32), d = load(from + 48);
    store(to, a);
    store(to + 16, b);
    store(to + 32, c);
    store(to + 48, d);
}

void *memmove(void *start, const void *source, size_t n) {
    char *to = start;
    const char *from = source;
    if (n <= 16) {
        copy_few(to, from, n);
    } else if (n <= 32) {
        __m128i first = load(from), last = load(from + n - 16);
        store(to, first);
        store(to + n - 16, last);
    } else if (n <= 64) {
        __m128i a = load(from), b = load(from + 16), c = load(from + n - 32), d = load(from + n - 16);
        store(to, a);
        store(to + 16, b);
        store(to + n - 32, c);
        store(to + n - 16, d);
    } else if ((uintptr_t)to - (uintptr_t)from >= n) {
        // Forwards: what is stored lies before what is still to be loaded. The end is loaded first, and stored last.
        const char *end = from + n - 64;
        __m128i a = load(end), b = load(end + 16), c = load(end + 32), d = load(end + 48);
        char *to_end = to + n - 64;
        for (; from < end; from += 64, to += 64) copy_64(to, from);
        store(to_end, a);
        store(to_end + 16, b);
        store(to_end + 32, c);
        store(to_end + 48, d);
    } else {
        // Backwards, with the beginning loaded first.
        __m128i a = load(from), b = load(from + 16), c = load(from + 32), d = load(from + 48);
        for (size_t left = n; left > 64; left -= 64) copy_64(to + left - 64, from + left - 64);
        store(to, a);
        store(to + 16, b);
        store(to + 32, c);
        store(to + 48, d);
    }
    return start;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n) __attribute__((alias("memmove")));
