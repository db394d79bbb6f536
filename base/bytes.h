/* Bytes, their spellings, and a buffer that grows.
 *
 * Hex is written lower case with 0x in front; it is read in either case, the 0x required, and the length
 * must be exact. Base64 is RFC 4648 section 4; reading takes it with or without padding and refuses
 * everything else (base64url, white space, line breaks, non-zero trailing bits are all errors). */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scope.h"

struct address { uint8_t b[20]; };
struct hash32 { uint8_t b[32]; };

/* A run of bytes that somebody else owns. */
struct slice { const char *p; size_t n; };
#define SLICE(literal) ((struct slice)SLICE_INIT(literal))
#define SLICE_INIT(literal) { (literal), sizeof(literal) - 1 } /* in tables: a compound literal is no constant */
struct slice slice_of(const char *s);                    /* NULL gives the empty slice */
bool slice_is(struct slice a, const char *s);            /* exact, also when a holds a NUL */

/* A growing buffer. Zero-initialised it is empty; buf_done frees it. Always NUL-terminated once written to. */
struct buf { char *p; size_t n, cap; };
void buf_reserve(struct buf *b, size_t n);               /* room for n more bytes at once: only a matter of speed */
void buf_add(struct buf *b, const void *p, size_t n);
void buf_puts(struct buf *b, const char *s);
void buf_html(struct buf *b, const char *s); /* as text or as a quoted attribute of a page */
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
void buf_done(struct buf *b);
#define BUF SCOPE(buf_done) struct buf

bool hex_read(const char *s, size_t n, uint8_t *ret, size_t size) MUST_CHECK;    /* "0x" + 2*size digits */
/* Any even number of digits behind 0x, at most max bytes. */
bool hex_read_any(const char *s, size_t n, uint8_t *ret, size_t max, size_t *ret_n) MUST_CHECK;
void hex_write(char *ret, const void *p, size_t n);      /* 0x + digits + NUL: needs 2*n + 3 chars */
void hex_write_bare(char *ret, const void *p, size_t n); /* digits + NUL: needs 2*n + 1 chars */
void buf_hex(struct buf *b, const void *p, size_t n);    /* with 0x */

struct address_text { char s[43]; };
struct hash_text { char s[67]; };
bool address_read(const char *s, size_t n, struct address *ret) MUST_CHECK;      /* any case; no checksum asked */
struct address_text address_lower(const struct address *a);                      /* 0x + lower case */
bool hash_read(const char *s, size_t n, struct hash32 *ret) MUST_CHECK;
struct hash_text hash_text(const struct hash32 *h);
bool address_eq(const struct address *a, const struct address *b);
bool hash_eq(const struct hash32 *a, const struct hash32 *b);

/* base64: ret is allocated, NUL-terminated behind its n bytes; false (nothing allocated) on any bad character. */
bool base64_read(const char *s, size_t n, uint8_t **ret, size_t *ret_n) MUST_CHECK;
void base64_add(struct buf *b, const void *p, size_t n); /* padded */
void base64url_add(struct buf *b, const void *p, size_t n); /* unpadded */
bool base64url_read(const char *s, size_t n, uint8_t *ret, size_t size) MUST_CHECK; /* unpadded, exact size */
bool base64url_read_any(const char *s, size_t n, uint8_t **ret, size_t *ret_n) MUST_CHECK; /* unpadded; ret as base64_read's */

bool bytes_equal_ct(const void *a, const void *b, size_t n); /* time independent of the content */
void bytes_wipe(void *p, size_t n);
void bytes_random(void *ret, size_t n);                  /* from the kernel; aborts if it cannot */
struct hash32 sha256(const void *p, size_t n);
struct hash32 hmac_sha256(const void *key, size_t key_n, const void *p, size_t n);

#endif
