/* The loop over entries: digest check, framing and decoding of whole batches, without an object each.
 *
 * Each function takes bytes as they came and says "plainly good" or where it stopped being so; what is wrong,
 * and whether it is, the Python reference says (bookkeeper/batch_body.py, offload_format/, cold/). Nothing
 * here allocates, keeps state between calls, or reads or writes outside the ranges that it is given.
 *
 * A copy looks at what entries hold for figures alone: whatever they are, a block of them is as good.
 * core_frames, core_fields and core_singles are for those who read messages.
 *
 * Layouts: BookKeeper DigestManager (stored entry: 32 header bytes, CRC32C, payload; a batch prefixes each by
 * its int32 length), PIP-17 (block: 128 header bytes, frames of int32 length, int64 id, payload; padding), and
 * Pulsar's Commands and MessageMetadata (entry: checksum, metadata, payload).
 * All integers are big-endian. Little-endian machines with an instruction for CRC32C only.
 */
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
static inline uint32_t crc8(uint32_t crc, uint64_t word) { return (uint32_t)_mm_crc32_u64(crc, word); }
static inline uint32_t crc1(uint32_t crc, uint8_t byte) { return _mm_crc32_u8(crc, byte); }
static int has_instruction(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2);
}
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
static inline uint32_t crc8(uint32_t crc, uint64_t word) { return __crc32cd(crc, word); }
static inline uint32_t crc1(uint32_t crc, uint8_t byte) { return __crc32cb(crc, byte); }
static int has_instruction(void) { return (getauxval(AT_HWCAP) & (1 << 7)) != 0; } /* HWCAP_CRC32 */
#else
#error "no instruction for CRC32C is known here"
#endif

#define EXPORT __attribute__((visibility("default")))
#define ABI 4

enum {
    LENGTH_BYTES = 4,
    ENTRY_HEADER = 32,
    STORED_HEADER = ENTRY_HEADER + 4, /* and its CRC32C */
    FRAME_HEADER = 12,
    BLOCK_HEADER = 128,
    SHORT_LANE = 256, /* bytes of each of three streams that are digested at once */
    LONG_LANE = 4096,
    KEYS = 512, /* of fields below 64 */
    SIZE_KEY = 3 << 3, /* of a message of a batch: bytes of its payload */
};

static uint32_t short_ahead[4][256], long_ahead[4][256]; /* a digest after so many zero bytes */

static inline uint32_t get32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return __builtin_bswap32(v);
}

static inline int64_t get64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return (int64_t)__builtin_bswap64(v);
}

static inline void put32(uint8_t *p, uint32_t v) {
    v = __builtin_bswap32(v);
    memcpy(p, &v, 4);
}

static inline void put64(uint8_t *p, uint64_t v) {
    v = __builtin_bswap64(v);
    memcpy(p, &v, 8);
}

static inline uint64_t word_at(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static inline uint32_t ahead(uint32_t table[4][256], uint32_t crc) {
    return table[0][crc & 255] ^ table[1][(crc >> 8) & 255] ^ table[2][(crc >> 16) & 255] ^ table[3][crc >> 24];
}

/* The digest is linear, so that of each single bit after `bytes` zero bytes gives all the others. */
static void fill_ahead(uint32_t table[4][256], int bytes) {
    for (int bit = 0; bit < 32; bit++) {
        uint32_t crc = (uint32_t)1 << bit;
        for (int i = 0; i < bytes; i += 8) crc = crc8(crc, 0);
        for (int value = 0; value < 256; value++)
            if (value >> (bit % 8) & 1) table[bit / 8][value] ^= crc;
    }
}

/* Three streams of `lane` bytes side by side: the instruction takes one word a cycle, its result three. */
static inline uint32_t three_lanes(uint32_t crc, const uint8_t *p, int lane, uint32_t table[4][256]) {
    uint32_t second = 0, third = 0;
    for (int i = 0; i < lane; i += 8) {
        crc = crc8(crc, word_at(p + i));
        second = crc8(second, word_at(p + lane + i));
        third = crc8(third, word_at(p + 2 * lane + i));
    }
    return ahead(table, ahead(table, crc) ^ second) ^ third;
}

static uint32_t add_bytes(uint32_t crc, const uint8_t *p, int64_t n) {
    for (; n >= 3 * LONG_LANE; n -= 3 * LONG_LANE, p += 3 * LONG_LANE) crc = three_lanes(crc, p, LONG_LANE, long_ahead);
    for (; n >= 3 * SHORT_LANE; n -= 3 * SHORT_LANE, p += 3 * SHORT_LANE)
        crc = three_lanes(crc, p, SHORT_LANE, short_ahead);
    for (; n >= 8; n -= 8, p += 8) crc = crc8(crc, word_at(p));
    for (; n > 0; n--, p++) crc = crc1(crc, *p);
    return crc;
}

/* Once, before anything else. The version of these functions, or 0 where this machine cannot run them. */
EXPORT int32_t core_begin(void) {
    if (!has_instruction()) return 0;
    memset(short_ahead, 0, sizeof short_ahead);
    memset(long_ahead, 0, sizeof long_ahead);
    fill_ahead(short_ahead, SHORT_LANE);
    fill_ahead(long_ahead, LONG_LANE);
    return ABI;
}

EXPORT uint32_t core_crc32c(const uint8_t *data, int64_t size, uint32_t before) {
    return ~add_bytes(~before, data, size);
}

/* How many whole records there are, `most` at most, and where the last ends. -1 unless all of it is records. */
EXPORT int64_t core_find(const uint8_t *records, int64_t size, int64_t most, int64_t *end) {
    int64_t at = 0, count = 0;
    while (count < most && size - at >= LENGTH_BYTES) {
        int32_t length = (int32_t)get32(records + at);
        if (length < 0 || length > size - at - LENGTH_BYTES) return -1;
        at += LENGTH_BYTES + length;
        count++;
    }
    if (count == 0 || (count < most && at != size)) return -1;
    *end = at;
    return count;
}

/* How many of the first `count` records are good, one after the other, as entries `first` and on of the ledger.
 * facts: end of the last good record, payload bytes of all. */
EXPORT int64_t core_verify(const uint8_t *records, int64_t size, int64_t count, int64_t ledger, int64_t first,
                           int64_t facts[2]) {
    int64_t at = 0, good = 0, payload_bytes = 0;
    for (; good < count && size - at >= LENGTH_BYTES; good++) {
        int32_t length = (int32_t)get32(records + at);
        if (length < STORED_HEADER || length > size - at - LENGTH_BYTES) break;
        const uint8_t *stored = records + at + LENGTH_BYTES;
        if (get64(stored) != ledger || get64(stored + 8) != first + good) break;
        int64_t payload = length - STORED_HEADER;
        uint32_t crc = add_bytes(add_bytes(~(uint32_t)0, stored, ENTRY_HEADER), stored + STORED_HEADER, payload);
        if (~crc != get32(stored + ENTRY_HEADER)) break;
        payload_bytes += payload;
        at += LENGTH_BYTES + length;
    }
    facts[0] = at;
    facts[1] = payload_bytes;
    return good;
}

/* Write `count` records as frames of entries `first` and on. Each payload is digested where it was written, against
 * the digest that was stored with it. Bytes written; -1 when that differs, or it does not fit or is not there. */
EXPORT int64_t core_frame(const uint8_t *records, int64_t size, int64_t count, int64_t first, uint8_t *out,
                          int64_t room) {
    int64_t at = 0, to = 0;
    for (int64_t i = 0; i < count; i++) {
        if (size - at < LENGTH_BYTES) return -1;
        int32_t length = (int32_t)get32(records + at);
        if (length < STORED_HEADER || length > size - at - LENGTH_BYTES) return -1;
        const uint8_t *stored = records + at + LENGTH_BYTES;
        int64_t payload = length - STORED_HEADER;
        if (payload > room - to - FRAME_HEADER) return -1;
        uint8_t *frame = out + to;
        put32(frame, (uint32_t)payload);
        put64(frame + 4, (uint64_t)(first + i));
        memcpy(frame + FRAME_HEADER, stored + STORED_HEADER, (size_t)payload);
        uint32_t crc = add_bytes(add_bytes(~(uint32_t)0, stored, ENTRY_HEADER), frame + FRAME_HEADER, payload);
        if (~crc != get32(stored + ENTRY_HEADER)) return -1;
        at += LENGTH_BYTES + length;
        to += FRAME_HEADER + payload;
    }
    return to;
}

/* Where the varint at p ends, of ten bytes at most; NULL where it does not. Bits above the 64th are dropped. */
static inline const uint8_t *varint(const uint8_t *p, const uint8_t *end, uint64_t *value) {
    if (p < end && *p < 128) {
        *value = *p;
        return p + 1;
    }
    uint64_t sum = 0;
    for (int shift = 0; shift < 70 && p < end; shift += 7, p++) {
        sum |= (uint64_t)(*p & 127) << shift;
        if (*p < 128) {
            *value = sum;
            return p + 1;
        }
    }
    return NULL;
}

/* Where an entry's MessageMetadata lies; NULL where its lengths leave it. */
static inline const uint8_t *find_metadata(const uint8_t *p, int64_t size, const uint8_t **end) {
    const uint8_t *entry_end = p + size;
    if (size < 2) return NULL;
    if (p[0] == 0x0E && p[1] == 2) { /* BrokerEntryMetadata, of the length that follows */
        if (size < 6 || get32(p + 2) > size - 6) return NULL;
        p += 6 + (int64_t)get32(p + 2);
    }
    if (entry_end - p >= 6 && p[0] == 0x0E && p[1] == 1) p += 6; /* CRC32C */
    if (entry_end - p < 4 || get32(p) > entry_end - p - 4) return NULL;
    *end = p + 4 + get32(p);
    return p + 4;
}

/* Add what an entry's MessageMetadata says to facts: messages, least and greatest publish time. 0 if the entry is
 * no message of Pulsar's. The rules are offload_format/message_facts.py's, and so are the names. */
static int add_message(const uint8_t *entry, int64_t size, int64_t facts[3]) {
    const uint8_t *end, *p = find_metadata(entry, size, &end);
    uint64_t key, value, published = 0;
    int32_t batch = 1, chunks = 1, chunk = 0;
    int required = 0, is_batch = 0, is_marker = 0;
    if (p == NULL) return 0;
    while (p < end) {
        if ((p = varint(p, end, &key)) == NULL || key < 8 || key > UINT32_MAX) return 0;
        switch (key & 7) {
        case 0:
            if ((p = varint(p, end, &value)) == NULL) return 0;
            switch (key >> 3) {
            case 2: required |= 2; break;
            case 3: required |= 4, published = value; break;
            case 11: is_batch = 1, batch = (int32_t)value; break;
            case 20: is_marker = 1; break;
            case 27: chunks = (int32_t)value; break;
            case 29: chunk = (int32_t)value; break;
            }
            break;
        case 1:
            if (end - p < 8) return 0;
            p += 8;
            break;
        case 2:
            if ((p = varint(p, end, &value)) == NULL || value > (uint64_t)(end - p)) return 0;
            if (key >> 3 == 1) required |= 1;
            p += value;
            break;
        case 5:
            if (end - p < 4) return 0;
            p += 4;
            break;
        default: return 0;
        }
    }
    if (required != 7 || published > INT64_MAX || batch < 0) return 0;
    if (is_marker) return 1;
    facts[0] += is_batch ? batch : chunks <= 1 || chunk == chunks - 1;
    if ((int64_t)published < facts[1]) facts[1] = (int64_t)published;
    if ((int64_t)published > facts[2]) facts[2] = (int64_t)published;
    return 1;
}

/* Whether a block begins as V1's do, or, with a ledger, as those of streaming segments, which name it. */
static int is_header(const uint8_t *block, int64_t size, int64_t first, int64_t ledger) {
    int zeros_from = ledger < 0 ? 28 : 36;
    if (get32(block) != (ledger < 0 ? 0xFBDBABCB : 0x26A66D32)) return 0;
    if (get64(block + 4) != BLOCK_HEADER || get64(block + 12) != size || get64(block + 20) != first) return 0;
    if (ledger >= 0 && get64(block + 28) != ledger) return 0;
    for (int i = zeros_from; i < BLOCK_HEADER; i++)
        if (block[i]) return 0;
    return 1;
}

/* Payload bytes of a whole block: its header, `count` frames of entries `first` and on, padding to its end. `ledger` is
 * that of a streaming segment's block, below 0 for V1's.
 * -1 unless each byte is as it must be. Otherwise facts: messages, least and greatest publish time; messages are -1
 * where an entry is none of Pulsar's, and the least is above the greatest where there is no time. */
EXPORT int64_t core_walk(
    const uint8_t *block, int64_t size, int64_t first, int64_t count, int64_t ledger, int64_t facts[3]) {
    if (size < BLOCK_HEADER || count < 1 || !is_header(block, size, first, ledger)) return -1;
    int64_t at = BLOCK_HEADER, found[3] = {0, INT64_MAX, -1};
    int are_messages = 1;
    for (int64_t i = 0; i < count; i++) {
        if (size - at < FRAME_HEADER) return -1;
        int32_t length = (int32_t)get32(block + at);
        if (length < 0 || length > size - at - FRAME_HEADER || get64(block + at + 4) != first + i) return -1;
        if (are_messages) are_messages = add_message(block + at + FRAME_HEADER, length, found);
        at += FRAME_HEADER + length;
    }
    int64_t payload_bytes = at - BLOCK_HEADER - FRAME_HEADER * count;
    const uint8_t pattern[8] = {0xFE, 0xDC, 0xDE, 0xAD, 0xFE, 0xDC, 0xDE, 0xAD};
    const uint64_t whole = word_at(pattern);
    for (; size - at >= 8; at += 8)
        if (word_at(block + at) != whole) return -1;
    for (int i = 0; at < size; at++, i++)
        if (block[at] != pattern[i]) return -1;
    if (!are_messages) found[0] = -1;
    memcpy(facts, found, sizeof found);
    return payload_bytes;
}

/* Lengths of the frames of entries `first` and on, up to the first that is none: how many there are. */
EXPORT int64_t core_frames(const uint8_t *block, int64_t size, int64_t first, int64_t count, int64_t *lengths) {
    int64_t at = BLOCK_HEADER, good = 0;
    for (; good < count && size - at >= FRAME_HEADER; good++) {
        int32_t length = (int32_t)get32(block + at);
        if (length < 0 || length > size - at - FRAME_HEADER || get64(block + at + 4) != first + good) break;
        lengths[good] = length;
        at += FRAME_HEADER + length;
    }
    return good;
}

/* Where fields of messages go, a row of each array for a message. `slots` has the slot of each key, below 0 for none.
 * A slot has `rows` values, numbers or where bytes lie in the data; `lengths` have a slot for each from `numbers` on.
 * Fields of the key `repeated`, 0 for none, are kept each: row, start and length, `room` of them at most. */
struct fields {
    int64_t rows, numbers, repeated, room, found;
    const int8_t *slots;
    int64_t *values, *lengths;
    uint8_t *present;
    int64_t *each;
};

/* 0 for a message in which anything is unusual: what was kept of it means nothing. The last of a key counts. */
static int read_fields(struct fields *f, int64_t row, const uint8_t *data, const uint8_t *p, const uint8_t *end) {
    while (p < end) {
        uint64_t key, value;
        int64_t length = 0;
        if ((p = varint(p, end, &key)) == NULL || key < 8 || key > INT64_MAX) return 0;
        int is_bytes = (key & 7) == 2;
        if ((!is_bytes && (key & 7) != 0) || (p = varint(p, end, &value)) == NULL) return 0;
        if (is_bytes) {
            if (value > (uint64_t)(end - p)) return 0;
            length = (int64_t)value;
            value = (uint64_t)(p - data);
        }
        if ((int64_t)key == f->repeated) {
            if (f->found < f->room) {
                int64_t *to = f->each + f->found;
                to[0] = row, to[f->room] = (int64_t)value, to[2 * f->room] = length;
            }
            f->found++;
        } else if (key < KEYS && f->slots[key] >= 0) {
            int64_t slot = f->slots[key], at = slot * f->rows + row;
            f->values[at] = (int64_t)value;
            f->present[at] = 1;
            if (slot >= f->numbers) f->lengths[at - f->numbers * f->rows] = length;
        }
        p += length;
    }
    return 1;
}

/* Fields of `count` messages, of row `rows` each. `odd` is of each row. -1 for a place that is outside. */
EXPORT int64_t core_fields(const uint8_t *data, int64_t size, int64_t count, const int64_t *rows, const int64_t *starts,
                           const int64_t *ends, struct fields *f, uint8_t *odd) {
    f->found = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = rows[i], start = starts[i], end = ends[i];
        if (row < 0 || row >= f->rows || start < 0 || start > end || end > size) return -1;
        if (!read_fields(f, row, data, data + start, data + end)) odd[row] = 1;
    }
    return f->found;
}

/* Messages of one batch from `row` on, which end at `end` at the latest; 0 if anything in them is unusual. */
static int read_batch(struct fields *f, int64_t row, int64_t count, const uint8_t *data, int64_t at, int64_t end,
                      int64_t *starts, int64_t *lengths) {
    for (int64_t behind = row + count; row < behind; row++) {
        if (end - at < LENGTH_BYTES) return 0;
        int64_t head = get32(data + at), size = 0;
        at += LENGTH_BYTES;
        if (head > end - at || !read_fields(f, row, data, data + at, data + at + head)) return 0;
        at += head;
        if (f->slots[SIZE_KEY] >= 0) size = (int32_t)f->values[f->slots[SIZE_KEY] * f->rows + row];
        if (size < 0 || size > end - at) return 0;
        starts[row] = at;
        lengths[row] = size;
        at += size;
    }
    return 1;
}

/* Messages of batches, so many of each, rows one behind the other: fields, and where their payloads lie. `odd` is of
 * each batch. -1 for a place that is outside, or more messages than rows. */
EXPORT int64_t core_singles(const uint8_t *data, int64_t size, int64_t batches, const int64_t *starts,
                            const int64_t *ends, const int64_t *counts, struct fields *f, int64_t *payload_starts,
                            int64_t *payload_lengths, uint8_t *odd) {
    int64_t row = 0;
    f->found = 0;
    for (int64_t i = 0; i < batches; i++) {
        int64_t start = starts[i], end = ends[i], count = counts[i];
        if (start < 0 || start > end || end > size || count < 0 || count > f->rows - row) return -1;
        if (!read_batch(f, row, count, data, start, end, payload_starts, payload_lengths)) odd[i] = 1;
        row += count;
    }
    return f->found;
}
