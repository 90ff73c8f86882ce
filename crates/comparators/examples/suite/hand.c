/* Filters written by hand in C, without a filter language: the baseline for the engines. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline uint16_t half(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }

static inline uint32_t word(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The ports of a first IPv4 fragment; NULL if it has none. */
static inline const uint8_t *ports(const uint8_t *p, size_t len)
{
    size_t at = 14 + (size_t)(p[14] & 15) * 4;
    return (half(p + 20) & 0x1fff) == 0 && at + 4 <= len ? p + at : NULL;
}

/* tcp port 80 */
bool tcp_port_80(const uint8_t *p, size_t len)
{
    if (len < 34)
        return false;
    if (half(p + 12) == 0x0800) {
        const uint8_t *q;
        return p[23] == 6 && (q = ports(p, len)) != NULL && (half(q) == 80 || half(q + 2) == 80);
    }
    return half(p + 12) == 0x86dd && len >= 58 && p[20] == 6
        && (half(p + 54) == 80 || half(p + 56) == 80);
}

/* src net 10.0.0.0/8 or (dst net 127.0.0.1 and port 22) or src net 2001:470::/28 */
bool post_1(const uint8_t *p, size_t len)
{
    if (len < 30)
        return false;
    switch (half(p + 12)) {
    case 0x0800: {
        const uint8_t *q;
        if (p[26] == 10)
            return true;
        return len >= 34 && word(p + 30) == 0x7f000001 && (p[23] == 6 || p[23] == 17 || p[23] == 132)
            && (q = ports(p, len)) != NULL && (half(q) == 22 || half(q + 2) == 22);
    }
    case 0x0806:
    case 0x8035:
        return len >= 32 && p[28] == 10;
    case 0x86dd:
        return (word(p + 22) & 0xfffffff0) == 0x20010470;
    }
    return false;
}

/* (tcp and portrange 0-1024) or (udp and portrange 1025-2048) */
bool post_2(const uint8_t *p, size_t len)
{
    uint8_t protocol;
    const uint8_t *q;
    if (len < 34)
        return false;
    switch (half(p + 12)) {
    case 0x0800:
        protocol = p[23];
        if ((protocol != 6 && protocol != 17) || (q = ports(p, len)) == NULL)
            return false;
        break;
    case 0x86dd:
        if (len < 58)
            return false;
        protocol = p[20];
        q = p + 54;
        break;
    default:
        return false;
    }
    if (protocol == 6)
        return half(q) <= 1024 || half(q + 2) <= 1024;
    return protocol == 17
        && ((half(q) >= 1025 && half(q) <= 2048) || (half(q + 2) >= 1025 && half(q + 2) <= 2048));
}
